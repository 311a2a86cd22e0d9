package agentloop_test

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"os"
	"testing"

	"github.com/workflows-engine/workflows-engine/delegate/agentloop"
)

// TestJournalsOfEarlierForms: journals that releases with earlier rules have written, with fallbacks, budgets and compactions, replay step by
// step, and come to the end that is recorded.
func TestJournalsOfEarlierForms(t *testing.T) {
	t.Parallel()
	file, err := os.Open("testdata/journals/form1.jsonl.gz")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	packed, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(packed)
	if err != nil {
		t.Fatal(err)
	}
	fallbacks, finished := 0, 0
	for n, line := range bytes.Split(bytes.TrimSpace(text), []byte("\n")) {
		var journal []agentloop.Step
		if err := json.Unmarshal(line, &journal); err != nil {
			t.Fatal(err)
		}
		var m *agentloop.Machine
		for end := 1; end <= len(journal); end++ {
			if m, err = agentloop.Replay(journal[:end], false); err != nil {
				t.Fatalf("journal %d, %d of %d steps: %v", n, end, len(journal), err)
			}
			if cut := m.Ready(); end < len(journal) && cut.Done != nil && len(cut.Steps) == 0 {
				t.Fatalf("journal %d has ended after %d of %d steps", n, end, len(journal))
			}
		}
		if m, err = agentloop.Replay(journal, false); err != nil {
			t.Fatal(err)
		}
		b := m.Ready()
		if b.Done == nil || len(b.Steps) > 0 {
			t.Fatalf("journal %d has no end: %+v", n, b)
		}
		if bytes.Contains(line, []byte(`"next":`)) {
			fallbacks++
		}
		if b.Done.Partial {
			finished++
			if out, ok := b.Done.Output.(map[string]any); ok && out["partial"] != nil {
				t.Errorf("journal %d: %v is not what that release answered", n, out)
			}
		}
	}
	if fallbacks < 5 || finished < 5 {
		t.Errorf("%d fallbacks, %d partial answers", fallbacks, finished)
	}
}
