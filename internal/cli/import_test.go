package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/config"
)

// TestAnImportSaysHowToEndTheOldRun where a plain cancel would end what agents do for the new one.
func TestAnImportSaysHowToEndTheOldRun(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		res  graph.ImportResult
		said bool
	}{
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning, Tasks: 1}, true},
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning}, false},
		{graph.ImportResult{ExecutionID: "r", Phase: history.PhaseRunning, Tasks: 1, Existed: true}, false},
	} {
		var out, errs bytes.Buffer
		a := &app{stderr: &errs}
		root := &cobra.Command{}
		a.flags = config.Register(root.PersistentFlags())
		a.writeImported(&out, &tt.res)
		if got := strings.Contains(errs.String(), "cancel r --keep-tasks"); got != tt.said {
			t.Errorf("%+v: %q", tt.res, errs.String())
		}
	}
}
