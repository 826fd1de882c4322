"""Emission of LLVM IR, shared by the backends that use LLVM."""
