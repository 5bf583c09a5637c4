"""Moving a differential-drive base: grid paths, path following, straight moves."""
