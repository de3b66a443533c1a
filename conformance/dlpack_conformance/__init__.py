"""The rules of DLPack and of Arrow's C interfaces, and a judge of the libraries that keep them."""
