package mcpserver_test

import (
	"fmt"
	"regexp"
	"strings"
	"testing"
)

// TestTextOfAHistory: the text of a page has a line for each record and does not repeat the structured content; that of a record asked for
// has all of it, for hosts that show a model the text alone.
func TestTextOfAHistory(t *testing.T) {
	t.Parallel()
	h := newHost(t, hostMediated)
	long := strings.Repeat("long ", 100)
	h.ok("workflow_start", object{"execution_id": "r", "definition": counting("x", long), "input": object{"kept": "as it is"}})
	page := h.raw("workflow_history", object{"execution_id": "r"})
	lines := strings.Split(page.text, "\n")
	records := page.content["records"].([]any)
	for i, v := range records {
		r := v.(map[string]any)
		want := fmt.Sprintf(`^%v (\d{4}-\d\d-\d\d )?\d\d:\d\d:\d\d %s`, r["seq"], r["name"])
		if node, ok := r["payload"].(map[string]any)["nodeId"]; ok {
			want += fmt.Sprintf(" %q", node)
		}
		if line := lines[1+i]; !regexp.MustCompile(want).MatchString(line) || len(line) > 250 || strings.Contains(line, "executionId") {
			t.Errorf("the line of record %v is %s", r["seq"], line)
		}
	}
	if len(records) < 10 || !regexp.MustCompile(`^1 \d{4}-`).MatchString(lines[1]) || regexp.MustCompile(`^2 \d{4}-`).MatchString(lines[2]) {
		t.Errorf("%d records; the date stands where it changes:\n%s", len(records), page.text)
	}
	if structured := mustJSON(t, page.content); 3*len(page.text) > 2*len(structured) {
		t.Errorf("%d bytes of text beside %d of structured content:\n%s", len(page.text), len(structured), page.text)
	}
	hint := regexp.MustCompile(`One of them whole: workflow_history with \{"seq":(\d+)\}\.`).FindStringSubmatch(page.text)
	if hint == nil {
		t.Fatalf("the text does not say how to read what it cuts off:\n%s", page.text)
	}
	var seq float64
	if _, err := fmt.Sscan(hint[1], &seq); err != nil {
		t.Fatal(err)
	}
	if alone := h.raw("workflow_history", object{"execution_id": "r", "seq": seq}); !strings.Contains(alone.text, long) {
		t.Errorf("the record alone: %s", alone.text)
	}
}
