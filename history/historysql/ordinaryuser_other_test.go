//go:build !linux

package historysql_test

import (
	"os"
	"testing"
)

// asOrdinaryUser does something as a user whose rights count.
func asOrdinaryUser(t *testing.T, _ string, do func()) {
	t.Helper()
	if os.Geteuid() <= 0 {
		t.Skip("root and users of Windows can write to any folder here; run the test as an ordinary user of a Unix")
	}
	do()
}
