package run

import "testing"

// TestChangesOfStateHaveReasons: each change in the table is one, and says what brings it about.
func TestChangesOfStateHaveReasons(t *testing.T) {
	t.Parallel()
	for from, nexts := range transitions {
		for to, why := range nexts {
			if why == "" || from == to {
				t.Errorf("%s to %s: %q", from, to, why)
			}
		}
	}
}
