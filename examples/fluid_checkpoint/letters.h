// The picture that the fluid shall become: the word "weft".
#pragma once
#include <vector>

/// The word as densities from 0 to 1 on size x size cells, row by row: each stroke is 1 along its middle and fades to
/// both sides as a bell does, so that the cells resolve it.
std::vector<float> letters(int size);
