"""The instances that the catalog names."""

from __future__ import annotations

from embodied.skills.warehouse.charge import Charge
from embodied.skills.warehouse.drive_to import DriveTo
from embodied.skills.warehouse.lift import Lift, Lower
from embodied.skills.warehouse.scan_code import ScanCode

drive_to = DriveTo()
lift = Lift()
lower = Lower()
scan_code = ScanCode()
charge = Charge()
