package toolcall_test

import "testing"

// TestAServerSaysThatItsToolsHaveChanged: that is counted, as a new connection is, and the next call is held against the list as it is now.
func TestAServerSaysThatItsToolsHaveChanged(t *testing.T) {
	t.Parallel()
	for script, want := range map[string]string{"changing": `{"calls":2,"lists":2}`, "steady": `{"calls":2,"lists":1}`} {
		h := open(t, script, nil)
		if n := h.Changes("s"); n != 0 {
			t.Errorf("%s: %d changes before the first connection", script, n)
		}
		h.execute(tool("strict", object{"size": 1}))
		if script == "changing" {
			h.until("the change is counted", func() bool { return h.Changes("s") == 2 })
		} else if n := h.Changes("s"); n != 1 {
			t.Errorf("%d changes of a server that says nothing", n)
		}
		if got := h.execute(tool("strict", object{"size": 1})); got != want {
			t.Errorf("%s: %s, want %s", script, got, want)
		}
	}
	if n := open(t, "steady", nil).Changes("nobody"); n != 0 {
		t.Errorf("%d changes of no server", n)
	}
}
