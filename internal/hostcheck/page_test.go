package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// anyID is the id of a run.
var anyID = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-7[0-9a-f]{3}-[0-9a-f]{4}-[0-9a-f]{12}`)

// short returns the transcript for the page: of results in JSON the fields that a reader needs, of those in text the beginnings of the lines.
func (m *model) short() (text string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, s := range m.transcript {
		text += "model " + s.verb + "  "
		if s.verb != calls {
			text += shortResult(s.text) + "\n"
			continue
		}
		args := object{}
		for name, value := range s.args {
			if name != "execution_id" && name != "idempotency_key" && name != "since_seq" {
				args[name] = value
			}
		}
		text += s.text + " " + compact(args) + "\n"
	}
	return text
}

func shortResult(result string) string {
	if at := strings.Index(result, "{"); at >= 0 {
		var answer struct {
			Status string `json:"status,omitempty"`
			NodeID string `json:"node_id,omitempty"`
			Error  *struct {
				Code    string `json:"code"`
				Message string `json:"message"`
				Details struct {
					EngineCode string `json:"engineCode,omitempty"`
					Hint       string `json:"hint"`
				} `json:"details"`
			} `json:"error,omitempty"`
			Next *struct {
				Tool string `json:"tool"`
				Note string `json:"note"`
			} `json:"next,omitempty"`
			Result object `json:"result,omitempty"`
		}
		if json.Unmarshal([]byte(result[at:]), &answer) == nil && (answer.Status != "" || answer.Error != nil) {
			return compact(answer)
		}
	}
	lines := strings.Split(result, "\n")
	for i, line := range lines {
		lines[i] = cut(line, 110)
	}
	return strings.Join(lines, "\n             ")
}

// writeTranscript writes a text that the page shows, if the transcripts are to be rewritten.
func writeTranscript(name, text string) error {
	if !*update {
		return nil
	}
	lines := strings.Split(strings.TrimRight(anyID.ReplaceAllString(text, "RUN"), " \n"), "\n")
	for i, line := range lines {
		lines[i] = strings.TrimRight(line, " ")
	}
	return os.WriteFile(filepath.Join("testdata", name+".txt"), []byte(strings.Join(lines, "\n")+"\n"), 0o600)
}

// TestThePageShowsTranscripts: the transcripts on the page are those that the checks recorded, and each is shown, except for the form, of which
// internal/cli draws the picture. With -update the page gets them, after the checks, which are not parallel.
func TestThePageShowsTranscripts(t *testing.T) {
	t.Parallel()
	path := filepath.Join("..", "..", "docs", "tested-hosts.md")
	page, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	files, err := filepath.Glob(filepath.Join("testdata", "*.txt"))
	files = slices.DeleteFunc(files, func(file string) bool { return strings.HasSuffix(file, "-form.txt") })
	if err != nil || len(files) == 0 {
		t.Fatal("no transcripts: ", err)
	}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		name := strings.TrimSuffix(filepath.Base(file), ".txt")
		if *update {
			before, after, found := strings.Cut(string(page), "```text "+name+"\n")
			if _, rest, ends := strings.Cut(after, "```\n"); found && ends {
				page = []byte(before + "```text " + name + "\n" + string(text) + "```\n" + rest)
			}
		}
		if !strings.Contains(string(page), "```text "+name+"\n"+string(text)+"```\n") {
			t.Errorf("docs/tested-hosts.md has no block `text %s` with the content of %s", name, file)
		}
	}
	if *update {
		if err := os.WriteFile(path, page, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if shown := strings.Count(string(page), "```text "); shown != len(files) {
		t.Errorf("the page has %d transcripts, testdata %d", shown, len(files))
	}
}
