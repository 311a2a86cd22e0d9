package delegate

import "testing"

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
		if stands, err := task.task(true, 0); err == nil && stands.State == TaskCompleted && stands.Output == nil {
			t.Errorf("a completed task without output: %+v", task)
		}
	})
}
