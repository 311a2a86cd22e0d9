package delegate

import (
	"strings"
	"testing"

	"github.com/workflows-engine/workflows-engine/activities"
)

// Whatever an agent answers, it is a task with an id and a known status, or a failure.
func FuzzParseTask(f *testing.F) {
	for _, seed := range []string{
		`{"id":"t1","status":"working"}`, `{"id":" t ","status":" completed ","output":{"a":[1]}}`,
		`{"id":1,"status":null,"error":{}}`, `[]`, `null`, ``, `{"id":"t1","status":"failed","error":"x"}`, "\xff", `{"id":"t","status":"rejected"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		task, err := parseTask(body)
		if err != nil {
			if err.Error() == "" {
				t.Error("a failure without text")
			}
			return
		}
		if task.id == "" || task.status == "" {
			t.Errorf("accepted %q as %+v", body, task)
		}
		if stands, err := task.task(true, 0); err == nil && stands.State == activities.TaskCompleted && stands.Output == nil {
			t.Errorf("a completed task without output: %+v", task)
		}
	})
}

// An answer whose output would be recorded as another value is refused with the place; what becomes no output does not matter.
func TestAgentAnswersThatWouldChangeAreRefused(t *testing.T) {
	t.Parallel()
	task := func(body string) error { _, err := parseTask([]byte(body)); return err }
	rpc := func(body string) error { _, err := parseRPC([]byte(body), "1"); return err }
	for name, tt := range map[string]struct {
		err  error
		want string
	}{
		"an integer":  {task(`{"id":"t","status":"completed","output":{"id":1234567890123456789}}`), `"/output/id": the integer 1234567890123456789`},
		"a text":      {task(`{"id":"t","status":"completed","output":{"s":"` + "\xff" + `"}}`), `"/output/s": the string is not valid UTF-8`},
		"other":       {task(`{"id":"t","status":"completed","at":1234567890123456789,"output":{}}`), ""},
		"a part":      {rpc(`{"jsonrpc":"2.0","id":"1","result":{"artifacts":[{"parts":[{"kind":"data","data":{"n":9007199254740993}}]}]}}`), "/artifacts/0/parts/0/data/n"},
		"the history": {rpc(`{"jsonrpc":"2.0","id":"1","result":{"history":[{"parts":[{"kind":"data","data":{"n":9007199254740993}}]}]}}`), ""},
	} {
		if tt.want == "" && tt.err != nil || tt.want != "" && (tt.err == nil || !strings.Contains(tt.err.Error(), tt.want)) {
			t.Errorf("%s: %v", name, tt.err)
		}
	}
}
