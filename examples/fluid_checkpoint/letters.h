// The picture that the fluid is to become: the word "weft".
#pragma once
#include <vector>

/// The word as densities from 0 to 1 on size x size cells, row by row. Each stroke is 1 along its middle and fades to
/// both sides like a bell, so that the cells resolve it.
std::vector<float> letters(int size);
