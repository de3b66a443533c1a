#!/usr/bin/env bash
# CPython without a GIL in target/free-threaded, built from the source in Debian's archive. Few machines have
# one, and what is said of threads has to be tried on one. It takes apt, gcc, make, and the headers of
# OpenSSL, libffi, zlib, bz2, lzma and SQLite.
set -euo pipefail
version=3.14.7
# As in python3.14_3.14.7-1.dsc, which the package's maintainer has signed.
sha256=3b48dac8fb59f62eaa67ac83c1eb12bda1b7a08406dd286e252c11a66be27f81

mkdir -p "$(dirname "$0")/../target/free-threaded"
cd "$(dirname "$0")/../target/free-threaded"
[ ! -x bin/python3.14t ] || exit 0

# From the archive that this machine installs from: it has the sources of later releases too. By its address,
# because the indices of those are at times ahead of what is there.
# shellcheck disable=SC2016 # apt expands these
archive=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' 'Origin: Debian' |
	awk '$2 !~ /-/ && !found { found = $1 } END { print found }')
[ -n "$archive" ] || { echo "apt knows no archive of Debian's: is this Debian, after apt-get update?" >&2; exit 1; }
/usr/lib/apt/apt-helper -qq download-file \
	"${archive}pool/main/p/python3.14/python3.14_$version.orig.tar.xz" source.tar.xz "SHA256:$sha256"

rm -rf source && mkdir source
tar -xJf source.tar.xz -C source --strip-components 1
cd source
# Not optimised by a profile, and without tests of its own: it is here to be tested with, soon.
./configure --quiet --disable-gil --disable-test-modules --with-ensurepip=no --prefix="$(dirname "$PWD")" \
	OPT="-DNDEBUG -O2"
make --silent --jobs "$(nproc)"
make --silent altinstall
cd .. && rm -rf source source.tar.xz
bin/python3.14t -c 'import sys; assert not sys._is_gil_enabled(), "it has a GIL"'
