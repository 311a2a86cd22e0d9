//go:build !nopostgres

package cli

import (
	"strings"
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/history/historypg"
	"github.com/workflows-engine/workflows-engine/history/historypg/pgtest"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestCommandsOnAReplica: reading commands work on a replica, and tell how far it is behind.
func TestCommandsOnAReplica(t *testing.T) {
	t.Parallel()
	if testing.Short() {
		t.Skip("the servers take their time")
	}
	primary := pgtest.New(t)
	enginetest.Closing(t, enginetest.Must(historypg.Open(t.Context(), primary.URL(), historypg.Options{})))
	standby := primary.Standby(t)
	for _, c := range []struct {
		args           []string
		stdout, stderr string
	}{
		{[]string{"workers", "--json"}, `"replica": {`, "note: the database is a replica, "},
		{[]string{"list"}, "", "note: the database is a replica, "},
		{[]string{"doctor"}, "a replica, ", ""},
	} {
		a, stdout, stderr := newTestApp(t, strings.NewReader(""), time.Now())
		a.execute(t.Context(), append(c.args, "--store-url", standby.URL()))
		if !strings.Contains(stdout.String(), c.stdout) || !strings.Contains(stderr.String(), c.stderr) {
			t.Errorf("%q prints\n%s%s", c.args, stdout, stderr)
		}
	}
}
