package toolcall_test

import (
	"testing"

	"github.com/workflows-engine/workflows-engine/activities/toolcall"
)

// The rows of the spawn policy (spec: activities, 6.3).
func TestAllowed(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		command, list string
		want          bool
	}{
		{"node", "", true},
		{"./node", "", true},
		{"x/../node", "", true},
		{"/opt/bin/npx", "", true},
		{"node.exe", "", true},
		{"node.EXE", "", true},
		{"NODE", "", false},
		{"python3", "", false},
		{"python3", "python3,uvx", true},
		{"/usr/bin/python3", "python3, uvx", true},
		{"/usr/bin/python3", "/usr/bin/python3", true},
		{"/usr/bin/python3", "/opt/bin/python3", false},
		{"node", "python3", false},
		{"node", " , ", false},
		{"node", " ", true},
		{"node -e", "node", false},
		{"", "", false},
		{"  ", "", false},
		{"", " , ", false},
		{".exe", ".exe", true},
	} {
		if got := toolcall.Allowed(c.command, c.list); got != c.want {
			t.Errorf("command %q, list %q: %v", c.command, c.list, got)
		}
	}
}
