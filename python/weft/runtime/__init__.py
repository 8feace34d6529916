"""What programs hold on the host: kernels, functions, arrays, devices, tapes."""
