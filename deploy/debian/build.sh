#!/bin/sh
# Builds embodied-edge_VERSION_all.deb into the folder given, the same bytes for the same sources.
#   deploy/debian/build.sh OUT
set -eu

here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
out=${1:?usage: build.sh OUT}
version=$(sed -n 's/^version = "\(.*\)"/\1/p' "$root/pyproject.toml" | head -n 1)
# Time stamps in the archive: of the last commit where there is one, else a fixed day.
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git -C "$root" log -1 --format=%ct 2>/dev/null || echo 1767225600)}
export SOURCE_DATE_EPOCH

tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT
umask 022
chmod 0755 "$tree"
install -d "$tree/DEBIAN" "$tree/usr/lib/embodied-edge" "$tree/etc/default" "$tree/etc/embodied-edge"
install -d "$tree/usr/lib/systemd/system" "$tree/usr/share/doc/embodied-edge"

for package in controllers/embodied_controllers deploy/embodied_deploy; do
    (cd "$root/$(dirname "$package")" && find "$(basename "$package")" -type f ! -name '*.pyc' ! -name '.*') |
        while read -r file; do
            install -D -m 0644 "$root/$(dirname "$package")/$file" "$tree/usr/lib/embodied-edge/$file"
        done
done
cat >"$tree/usr/lib/embodied-edge/embodied-edge" <<'SCRIPT'
#!/opt/embodied-edge/bin/python3
import sys

from embodied_deploy.cli.main import main

sys.exit(main())
SCRIPT
chmod 0755 "$tree/usr/lib/embodied-edge/embodied-edge"
install -m 0644 "$root/deploy/systemd/embodied-edge@.service" "$tree/usr/lib/systemd/system/"
install -m 0644 "$root/deploy/systemd/robot.env.example" "$tree/usr/share/doc/embodied-edge/"
install -m 0644 "$root/LICENSE" "$tree/usr/share/doc/embodied-edge/copyright"
install -m 0644 "$here/default" "$tree/etc/default/embodied-edge"
sed "s/@VERSION@/$version/" "$here/control.in" >"$tree/DEBIAN/control"
install -m 0644 "$here/conffiles" "$tree/DEBIAN/conffiles"
for script in postinst prerm postrm; do
    install -m 0755 "$here/$script" "$tree/DEBIAN/$script"
done
(cd "$tree" && find etc usr -type f -print0 | sort -z | xargs -0 md5sum) >"$tree/DEBIAN/md5sums"

mkdir -p "$out"
dpkg-deb --build --root-owner-group "$tree" "$out/embodied-edge_${version}_all.deb" >/dev/null
echo "$out/embodied-edge_${version}_all.deb"
