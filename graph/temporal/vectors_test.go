package temporal

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/conformance"
	"github.com/workflows-engine/workflows-engine/graph"
)

// TestParityVectors runs the vectors that make calls. Others do not start a run.
func TestParityVectors(t *testing.T) {
	t.Parallel()
	vectors(t, "parity", "../../conformance")
}

// notReplayed are the replay vectors that differ on Temporal, with what they report.
var notReplayed = map[string]string{
	// An import rejects records that the definition does not lead to, where a Runner that finds them in its store fails the run.
	"integrity.mismatch": "record 6 is ScheduleNode", "replay.mismatch.first-point.lighthouse.route": "record 11 is ScheduleNode",
	"replay.mismatch.r2.parallel.branch_order": "record 16 is ScheduleNode",
	// Temporal takes only runs that continue.
	"integrity.cancelled_run": "has ended", "integrity.completed_run": "has ended",
	// These records are not those of a run that was exported.
	"replay.integrity.resume_definition_tamper": "neither a mode nor a definition", "extensions.queue_timeout_recorded": "RECORD_UNREADABLE",
	// A node without an executor waits for a worker that has it, where the Runner that started the run fails it.
	"parallel.all_failing_branch": "differs", "parallel.any_all_fail": "differs", "parallel.any_tolerates": "differ", "parallel.n_of_m_tolerates": "differ",
	"parallel.n_of_m_too_few": "differs",
}

// freeOrder is the vector whose branches end in any order, and its block with the first: its commands may differ, nothing else.
const freeOrder = "parallel.any_first_wins"

// TestReplayVectors starts runs from their records.
func TestReplayVectors(t *testing.T) {
	t.Parallel()
	vectors(t, "replay", "../../conformance", "../../../shared/awp-v1")
}

// vectors runs the vectors of a kind; those in a directory that is absent are skipped.
func vectors(t *testing.T, kind string, roots ...string) {
	t.Helper()
	for _, root := range roots {
		if _, err := os.Stat(root); err != nil {
			t.Logf("no vectors in %s", filepath.Base(root))
			continue
		}
		report, err := conformance.Run(t.Context(), os.DirFS(root), conformance.Options{
			Kind: kind,
			NewEngine: func(o graph.Options) (graph.Engine, error) {
				e, _ := newTestEngine(t, Options{
					Activities: o.Activities, Delegates: o.Delegates, Workflows: o.Workflows, Branches: o.Branches, DefaultMode: o.DefaultMode, Archive: OpenFileArchive(t.TempDir()),
				})
				return e, nil
			},
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, v := range report.Vectors {
			var lines []string
			for _, p := range v.Problems {
				if v.ID == freeOrder && p.At == "/expect/tailCommands" {
					continue
				}
				lines = append(lines, fmt.Sprint(p))
			}
			text := strings.Join(lines, "\n\t")
			if want, differs := notReplayed[v.ID]; differs && !strings.Contains(text, want) || !differs && text != "" {
				t.Errorf("%s: want %q\n%s", v.ID, want, text)
			}
		}
		t.Logf("%d %s vectors", len(report.Vectors), kind)
	}
}
