package mcphost_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/mcphost"
)

var update = flag.Bool("update", false, "rewrite the expected files")

// entry is what the golden files add under the name workflows.
var entry = mcphost.Entry{
	Command: "/opt/we/bin/workflows-engine-mcp",
	Args:    []string{"--db", "/data/a b.db"},
	Env:     map[string]string{"OPENAI_API_KEY": "k<>&\"1\"", "A": `C:\x`},
}

func find(t testing.TB, name string) mcphost.Host {
	t.Helper()
	h, err := mcphost.Find(name)
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// TestGolden adds the entry to each file before.* of an archive testdata/HOST.*.txtar and expects the file after.* of the same
// name: as written, with the line ends of Windows and with a byte order mark. Adding it again changes nothing, and taking it
// out restores the file byte for byte, from the copy that was made.
func TestGolden(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(paths) < 4 {
		t.Fatal(paths, err)
	}
	for _, path := range paths {
		a, err := txtar.ParseFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range a.Files {
			files[f.Name] = string(f.Data)
		}
		host, _, _ := strings.Cut(filepath.Base(path), ".")
		h := find(t, host)
		updated := &txtar.Archive{Comment: a.Comment}
		for _, f := range a.Files {
			name, ok := strings.CutPrefix(f.Name, "before.")
			if !ok {
				continue
			}
			got, err := h.Add("f", f.Data, "workflows", entry)
			if err != nil {
				t.Errorf("%s %s: %v", path, name, err)
				continue
			}
			updated.Files = append(updated.Files, f, txtar.File{Name: "after." + name, Data: got})
			if *update {
				continue
			}
			crlf := func(s string) string { return strings.ReplaceAll(s, "\n", "\r\n") }
			for form, change := range map[string]func(string) string{
				"as written": func(s string) string { return s },
				"CRLF":       crlf,
				"BOM":        func(s string) string { return "\xef\xbb\xbf" + s },
				"both":       func(s string) string { return "\xef\xbb\xbf" + crlf(s) },
			} {
				if !strings.Contains(files["before."+name], "\n") && (form == "CRLF" || form == "both") {
					continue // which line ends it has cannot be seen
				}
				check(t, h, path+" "+name+" "+form, []byte(change(files["before."+name])), []byte(change(files["after."+name])))
			}
		}
		if *update {
			if err := os.WriteFile(path, txtar.Format(updated), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func check(t *testing.T, h mcphost.Host, what string, before, after []byte) {
	t.Helper()
	got, err := h.Add("f", before, "workflows", entry)
	if err != nil || !bytes.Equal(got, after) {
		t.Errorf("%s: %v, got\n%q\nwant\n%q", what, err, got, after)
	}
	if again, err := h.Add("f", got, "workflows", entry); err != nil || !bytes.Equal(again, got) {
		t.Errorf("%s: a second time changes it: %v\n%s", what, err, again)
	}
	if entries, _ := h.Entries("f", before); entries["workflows"].Command != "" {
		return // it was there before
	}
	undone, had, err := h.Undone("f", got, "workflows", [][]byte{[]byte("{}"), before})
	if err != nil || !had || !bytes.Equal(undone, before) {
		t.Errorf("%s: undone %v %v\n%q\nwant\n%q", what, had, err, undone, before)
	}
	plain, had, err := h.Remove("f", got, "workflows")
	if err != nil || !had {
		t.Errorf("%s: removed %v %v", what, had, err)
	}
	if left, err := h.Entries("f", plain); err != nil || left["workflows"].Command != "" {
		t.Errorf("%s: it is still there: %v %v", what, left, err)
	}
}

// TestRemoveRestores takes the entry out of files that have other servers, without a copy of what was there before.
func TestRemoveRestores(t *testing.T) {
	t.Parallel()
	h := find(t, "vscode")
	for _, text := range []string{
		"{\n\t// mine\n\t\"servers\": {\n\t\t\"a\": {}, // last\n\t},\n}\n",
		"{\n  \"servers\": {\n    \"a\": {} // last\n  }\n}\n",
		"{\"servers\":{\"a\":{}}}",
		"{\r\n  \"servers\": {\r\n    \"a\": {},\r\n    /* b */ \"b\": {}\r\n  },\r\n  \"inputs\": []\r\n}",
	} {
		added, err := h.Add("f", []byte(text), "workflows", entry)
		if err != nil {
			t.Fatal(err)
		}
		if got, _, err := h.Remove("f", added, "workflows"); err != nil || string(got) != text {
			t.Errorf("%v\n%q\nwant\n%q\nwith it\n%q", err, got, text, added)
		}
	}
}

// TestKeepsWhatTheUserAdded installs over an entry that the user has extended.
func TestKeepsWhatTheUserAdded(t *testing.T) {
	t.Parallel()
	h := find(t, "cursor")
	const text = `{"mcpServers": {"workflows": {"command": "old", "args": ["--x"], "env": {"K": "1"}, "disabled": true}}}`
	got, err := h.Add("f", []byte(text), "workflows", mcphost.Entry{Command: "new", Env: map[string]string{"L": "2"}})
	if err != nil {
		t.Fatal(err)
	}
	entries, err := h.Entries("f", got)
	if err != nil {
		t.Fatal(err)
	}
	shown, _ := json.Marshal(entries["workflows"])
	if want := `{"Command":"new","Args":["--x"],"Env":{"K":"1","L":"2"},"URL":"","TokenEnv":""}`; string(shown) != want || !strings.Contains(string(got), "disabled") {
		t.Errorf("%s\n%s", shown, got)
	}
}

// TestInvalidFilesAreRefused: a file that cannot be read as what it should be is refused with its place.
func TestInvalidFilesAreRefused(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ host, text, place string }{
		{"cursor", "{\n  \"mcpServers\": {\n", "line 3"},
		{"cursor", "[]", "expected an object"},
		{"cursor", `{"mcpServers": []}`, "mcpServers: expected an object"},
		{"cursor", `{"mcpServers": {"workflows": 1}}`, "mcpServers.workflows: expected an object"},
		{"zed", "{\n \"a\": 1\n \"b\": 2}", "line 3"},
		{"cursor", "\xff\xfe{\x00}\x00", "line 1"},
		{"codex", "a = 1\nb = \n", "line 2"},
		{"codex", "mcp_servers = 1\n", "expected an object"},
		{"codex", "[mcp_servers]\nworkflows = 1\n", "mcp_servers.workflows: expected an object"},
	} {
		h := find(t, c.host)
		_, err := h.Add("/home/kim/f", []byte(c.text), "workflows", entry)
		if !h.Edited() {
			_, _, err = h.AddByHand("/home/kim/f", []byte(c.text), "workflows", entry)
		}
		e, ok := problem.As(err)
		if !ok || !errors.Is(err, problem.HostFileInvalid) || !strings.Contains(e.Error(), c.place) || !strings.Contains(e.Error(), "/home/kim/f") || e.Hint == "" {
			t.Errorf("%s %q: %v", c.host, c.text, err)
		}
	}
}

// FuzzJSON: no other member is lost or changed, whatever the file, and what was added can be taken out.
func FuzzJSON(f *testing.F) {
	for _, seed := range []string{
		"", "{}", "{ }", "// c\n{}", `{"a":1}`, `{"servers":{}}`, `{"servers":{"a":{},},}`, "{\n\t\"servers\": { // x\n\t\t\"a\": {} // y\n\t}\n}",
		`{"servers":{"workflows":{"command":"x","b":1}}}`, `{"servers":{/*x*/},"servers":{"workflows":{},"workflows":{}}}`, "{ // c\n \"servers\": 1 // d\n , // e\n}",
		"{\"servers\":{\"a\":1 // c\n , \"workflows\": {} // d\n, /*e*/ \"b\":2}}", `{"\u0073ervers":{}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) { around(t, find(t, "vscode"), text) })
}

// around adds the entry to a text and takes it out again. An internal error would mean that the edit had changed something
// else; nothing is written then, but it is a defect.
func around(t *testing.T, h mcphost.Host, text []byte) {
	added, err := h.Add("f", text, "workflows", entry)
	if err != nil {
		if !errors.Is(err, problem.HostFileInvalid) {
			t.Fatal(err)
		}
		return
	}
	if again, err := h.Add("f", added, "workflows", entry); err != nil || !bytes.Equal(again, added) {
		t.Fatalf("a second time: %v\n%q\n%q", err, again, added)
	}
	for _, comment := range comments(text) {
		if !bytes.Contains(added, comment) {
			t.Fatalf("lost the comment %q in %q", comment, added)
		}
	}
	entries, err := h.Entries("f", added)
	if err != nil || entries["workflows"].Command != entry.Command {
		t.Fatalf("%v: %v", entries, err)
	}
	removed, had, err := h.Remove("f", added, "workflows")
	if err != nil || !had {
		t.Fatalf("removed %v: %v from %q", had, err, added)
	}
	if left, err := h.Entries("f", removed); err != nil || left["workflows"].Command != "" {
		t.Fatalf("left %v: %v", left, err)
	}
}

// comments are the comments in one line that a fuzzed text surely has.
func comments(text []byte) (list [][]byte) {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); bytes.HasPrefix(trimmed, []byte("//")) {
			list = append(list, trimmed)
		}
	}
	return list
}

// TestApprovalIsSaidUntilItStandsThere: the members that a user may add are read in the server's table.
func TestApprovalIsSaidUntilItStandsThere(t *testing.T) {
	t.Parallel()
	codex := find(t, "codex")
	text := []byte(codex.Print("we", entry))
	if !codex.NeedsApproval(text, "we") || !codex.NeedsApproval(nil, "we") {
		t.Errorf("it is not said:\n%s", text)
	}
	text = []byte("[mcp_servers.we]\ncommand = 'x'\n" + mcphost.Approval)
	if codex.NeedsApproval(text, "we") || !codex.NeedsApproval(text, "other") {
		t.Errorf("it is not read:\n%s", text)
	}
	for _, h := range mcphost.Known() {
		if h.Name != "codex" && h.NeedsApproval(nil, "we") {
			t.Errorf("%s has no such setting", h.Name)
		}
	}
}

// TestByHand: a TOML file is not edited; pasting what is printed adds the server, and what a person has to change is said only then.
func TestByHand(t *testing.T) {
	t.Parallel()
	codex := find(t, "codex")
	if codex.Edited() {
		t.Error("codex is edited")
	}
	const own = "model = \"o5\" # best\n\n[mcp_servers.other]\ncommand = \"x\"\n\n"
	for name, e := range map[string]mcphost.Entry{"program": entry, "address": address} {
		instruction, paste, err := codex.AddByHand("/f", []byte(own), "workflows", e)
		if err != nil || instruction != "add this to /f" {
			t.Errorf("%s: %q %v", name, instruction, err)
		}
		pasted := []byte(own + paste)
		if entries, err := codex.Entries("/f", pasted); err != nil || len(entries) != 2 || !reflect.DeepEqual(entries["workflows"], e) {
			t.Errorf("%s: %+v %v from\n%s", name, entries, err, pasted)
		}
		if instruction, paste, err = codex.AddByHand("/f", pasted, "workflows", e); instruction+paste != "" || err != nil {
			t.Errorf("%s, a second time: %q %q %v", name, instruction, paste, err)
		}
		if instruction, err := codex.RemoveByHand("/f", pasted, "workflows"); err != nil || instruction != "in /f, delete the table mcp_servers.workflows and the tables below it" {
			t.Errorf("%s: %q %v", name, instruction, err)
		}
	}
	if instruction, err := codex.RemoveByHand("/f", []byte(own), "workflows"); instruction != "" || err != nil {
		t.Errorf("it is not there: %q %v", instruction, err)
	}
	there := "[mcp_servers.workflows]\ncommand = \"old\"\nargs = [\"--x\"]\nenv = {K = \"1\"}\n"
	instruction, paste, err := codex.AddByHand("/f", []byte(there), "workflows", mcphost.Entry{Command: "new", Env: map[string]string{"L": "2"}})
	entries, _ := codex.Entries("/f", []byte(paste))
	want := mcphost.Entry{Command: "new", Args: []string{"--x"}, Env: map[string]string{"K": "1", "L": "2"}}
	if err != nil || instruction != "in /f, replace mcp_servers.workflows with this, and keep your own settings of it" || !reflect.DeepEqual(entries["workflows"], want) {
		t.Errorf("another entry is there: %q %v\n%s", instruction, err, paste)
	}
}

// TestSeveralServersAreTakenOut: files are as they were once every server that was added is taken out, in any order.
func TestSeveralServersAreTakenOut(t *testing.T) {
	t.Parallel()
	names := []string{"one", "two", "three"}
	h := find(t, "cursor")
	for _, text := range []string{
		`{"theme":"x"}`, "{}", "{\n  \"theme\": \"x\"\n}\n", `{"mcpServers":{}}`, `{"theme":"x", "mcpServers": {}}`,
		`{"mcpServers":{"own":{"command":"x"}},"theme":"x"}`, "{\n\t\"mcpServers\": {\n\t\t\"own\": {}\n\t}\n}",
	} {
		for _, order := range [][]int{{0, 1, 2}, {0, 2, 1}, {1, 0, 2}, {1, 2, 0}, {2, 0, 1}, {2, 1, 0}} {
			now := []byte(text)
			var earlier [][]byte
			edit := func(after []byte, err error) {
				t.Helper()
				if err != nil {
					t.Fatal(err)
				}
				earlier, now = append([][]byte{now}, earlier...), after
			}
			for _, name := range names {
				edit(h.Add("f", now, name, entry))
			}
			for _, i := range order {
				after, _, err := h.Undone("f", now, names[i], earlier)
				edit(after, err)
			}
			if string(now) != text {
				t.Errorf("taken out in the order %v: %q, want %q", order, now, text)
			}
		}
	}
}

// TestMemberThatWasAddedGoesToo: the user has changed something else since, so that no copy is the file without the server.
func TestMemberThatWasAddedGoesToo(t *testing.T) {
	t.Parallel()
	h := find(t, "cursor")
	for before, want := range map[string]string{
		"{\n  \"theme\": \"x\"\n}\n":                        "{\n  \"theme\": \"mine\"\n}\n",
		"{\n  \"theme\": \"x\",\n  \"mcpServers\": {}\n}\n": "{\n  \"theme\": \"mine\",\n  \"mcpServers\": {}\n}\n",
		"{\n  // all of them\n  \"theme\": \"x\"\n}\n":      "{\n  // all of them\n  \"theme\": \"mine\"\n}\n",
	} {
		with, err := h.Add("f", []byte(before), "workflows", entry)
		if err != nil {
			t.Fatal(err)
		}
		changed := bytes.Replace(with, []byte(`"x"`), []byte(`"mine"`), 1)
		if got, had, err := h.Undone("f", changed, "workflows", [][]byte{[]byte(before)}); err != nil || !had || string(got) != want {
			t.Errorf("%q: %v %v %q, want %q", before, had, err, got, want)
		}
	}
}
