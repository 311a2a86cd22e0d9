package main

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/internal/agentdemo/demotest"
)

func TestMain(m *testing.M) { demotest.Main(m, main) }

// TestLive: the engine is killed, started again, asks, pays what the person says, and shows all of it.
func TestLive(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Live(t, nil)
	if status != 0 {
		t.Errorf("exit status %d", status)
	}
	demotest.Wants(t, "standard error", stderr, `^\$ workflows-engine run `, `kill -9`, `^\$ workflows-engine recover `, `shop__refund\. Approve\?`, `^\$ workflows-engine resume `, `^completed run refund-agent-`)
	demotest.Wants(t, "standard output", stdout, `^  "refunded": 12$`, `InterruptRaised`, `ExecutionCompleted`, `^shop__refund returned: \{"number":"A7","paid_back":12\}$`, `sub-agent of t3\.c1`,
		`what the webhook got, signed:`, `run\.interrupted`, `run\.completed .*"refunded":12`)
	if n := strings.Count(stdout, `"paid_back":12`); n < 1 || strings.Contains(stdout, `"paid_back":20`) {
		t.Errorf("it was paid back otherwise:\n%s", stdout)
	}
}

// TestCases runs the cases of cases.json.
func TestCases(t *testing.T) {
	t.Parallel()
	status, stdout, stderr := demotest.Live(t, nil, "-cases")
	if n := strings.Count(stdout, "  ok\n"); status != 0 || n != 12 {
		t.Errorf("exit status %d, %d cases are ok\n%s%s", status, n, stdout, stderr)
	}
}

// TestARealModelIsJudgedOtherwise: with an endpoint of the user's what is about a script is left out, and an endpoint that knows nothing fails
// the others.
func TestARealModelIsJudgedOtherwise(t *testing.T) {
	t.Parallel()
	endpoint := demotest.Parrot(t)
	status, stdout, _ := demotest.Live(t, []string{"OPENAI_BASE_URL=" + endpoint, "OPENAI_MODEL=my/model"}, "-cases")
	if status != 1 || strings.Count(stdout, "left out: it is about a script") != 7 || strings.Count(stdout, "was not called in its turn") != 5 {
		t.Errorf("exit status %d\n%s", status, stdout)
	}
}
