package graphtest_test

import (
	"testing"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/graphtest"
	"github.com/workflows-engine/workflows-engine/graph/machine"
)

// TestRefund is the test that docs/testing-workflows.md shows.
func TestRefund(t *testing.T) {
	doc, err := definition.ParseYAML([]byte(refund))
	if err != nil {
		t.Fatal(err)
	}
	run := graphtest.Run(t, doc, graphtest.Scenario{
		Answers: map[string]graphtest.Answer{"approve": graphtest.ReplyAfter(48*time.Hour, map[string]any{"yes": true})},
		Stubs: map[string]graphtest.Stub{
			"pay": graphtest.Attempts(graphtest.Fail("BUSY", "try later"), graphtest.Output(map[string]any{"receipt": "R-1"})),
		},
	})
	if run.Status != machine.Completed || run.Elapsed != 48*time.Hour+10*time.Second {
		t.Errorf("%s after %s: %v", run.Status, run.Elapsed, run.Path)
	}
}
