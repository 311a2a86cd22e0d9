package agentloop

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const wordingFile = "testdata/wording.golden"

// TestWording holds what models are told in the scripts of testdata to the version of the wording: whoever changes a text raises it, so that
// agents that are at work go on. To take new scripts in, or a new version, remove the file and run the test twice.
func TestWording(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) < 30 {
		t.Fatalf("%d scripts, %v", len(files), err)
	}
	said := map[string]string{}
	for _, file := range files {
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		sum := sha256.New()
		for line := range strings.Lines(string(text)) {
			if strings.HasPrefix(line, "  {") || strings.HasPrefix(line, "result ") && strings.Contains(line, `"by"`) {
				sum.Write([]byte(line))
			}
		}
		said[filepath.Base(file)] = hex.EncodeToString(sum.Sum(nil)[:8])
	}
	kept, err := os.ReadFile(wordingFile)
	if os.IsNotExist(err) {
		lines := fmt.Sprintln("version", wording)
		for _, name := range slices.Sorted(maps.Keys(said)) {
			lines += fmt.Sprintln(name, said[name])
		}
		if err := os.WriteFile(wordingFile, []byte(lines), 0o644); err != nil {
			t.Fatal(err)
		}
		t.Fatalf("%s is written", wordingFile)
	}
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(kept)) {
		name, want, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch got, ok := said[name]; {
		case name == "version" && want != fmt.Sprint(wording):
			t.Errorf("%s is of version %s, and the wording of %d", wordingFile, want, wording)
		case ok && got != want:
			t.Errorf("%s: models are told something else than in version %d: raise wording", name, wording)
		}
	}
}

// TestAnAgentOfAnotherWordingGoesOn: a release with other texts goes on with the journals of the one before; with the same wording a reply
// to another request is found.
func TestAnAgentOfAnotherWordingGoesOn(t *testing.T) {
	t.Parallel()
	journal := func(of float64) []Step {
		return []Step{
			{Key: "0", Kind: StepBegun, Body: body{
				"v": 1.0, "wording": of, "agent": "a", "task": "Do it.", "system": "Said otherwise.", "tools": []any{},
				"config": map[string]any{"name": "a", "instructions": "", "models": []any{map[string]any{"model": "m"}}},
			}},
			{Key: "t1", Kind: StepReply, Body: body{"try": 1.0, "text": "", "calls": []any{map[string]any{"id": "x", "name": "gone", "arguments": map[string]any{}}}, "finish": "stop", "requestHash": "another"}},
			{Key: "t1.c1", Kind: StepResult, Body: body{"tool": "gone", "by": "engine", "error": map[string]any{"code": ToolUnknown, "message": "There is none."}}},
		}
	}
	m, err := Replay(journal(wording+1), false)
	if err != nil {
		t.Fatal(err)
	}
	b := m.Ready()
	if len(b.Effects) != 1 || b.Effects[0].ID() != "ask t2#1" {
		t.Errorf("the agent goes on with %+v", b)
	}
	if _, err := Replay(journal(wording), false); err == nil {
		t.Error("a reply to another request is taken")
	}
}
