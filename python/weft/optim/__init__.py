"""Optimisers whose steps are kernels: Adam and stochastic gradient descent."""

from .adam import Adam as Adam
from .sgd import SGD as SGD
