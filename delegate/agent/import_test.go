package agent_test

import (
	"bytes"
	"crypto/sha256"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/workflows-engine/workflows-engine/delegate/agent"
	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/enginetest"
)

// TestAnImportChecksTheStepsOfAgents: somebody who changes what an agent has done in a file, and its checksum with it, is refused, as verify would
// find it, and nothing is stored.
func TestAnImportChecksTheStepsOfAgents(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		tool, m := refunds(""), &told{replies: []played{calls(`refund {"to":"Ann"}`), says("done")}}
		r := workshop(t, historymem.New(), m, nil, tool)
		defer shut(t, r)
		begin(t, r, "r")
		end(t, r, "r")
		var file bytes.Buffer
		if err := r.Export(t.Context(), "r", graph.ExportOptions{}, &file); err != nil {
			t.Fatal(err)
		}
		for from, to := range map[string]string{"": "", `{"to":"Ann"}`: `{"to":"Bob"}`, `"turns":1`: `"turns":7`, `"kind":"result"`: `"kind":"answer"`} {
			body := file.String()[:strings.LastIndex(file.String(), `{"type":"trailer"`)]
			trailer, _, _ := strings.Cut(file.String()[len(body):], `"sha256":"`)
			at := strings.Index(body, from)
			body = body[:at] + to + body[at+len(from):]
			text := fmt.Sprintf("%s%s\"sha256\":\"%x\"}\n", body, trailer, sha256.Sum256([]byte(body)))
			store := historymem.New()
			other := enginetest.Must(graph.New(store, graph.Options{CheckSteps: agent.CheckSteps}))
			_, err := other.Import(t.Context(), strings.NewReader(text))
			if from == "" && err != nil || from != "" && !errors.Is(err, problem.AgentStepsDiffer) {
				t.Errorf("%s: %v", to, err)
			}
			if n := len(enginetest.Must(store.List(t.Context(), history.ListQuery{})).Executions); (n > 0) != (from == "") {
				t.Errorf("%s: %d runs are stored", to, n)
			}
			shut(t, other)
		}
	})
}
