// All algorithms on whole arrays, in one header.
#pragma once

#include "compact.h"
#include "histogram.h"
#include "reduce.h"
#include "run_lengths.h"
#include "scan.h"
#include "segmented_sort.h"
#include "sort.h"
