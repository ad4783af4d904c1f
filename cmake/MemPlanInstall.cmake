# Install rules; filled in below for find_package(memplan).
