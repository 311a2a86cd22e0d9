package catalog_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/catalog"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// folder is a workflow folder that a test writes to.
type folder struct {
	t    *testing.T
	path string
}

func newFolder(t *testing.T) folder { return folder{t, t.TempDir()} }

func (f folder) write(name, text string) {
	f.t.Helper()
	if err := os.WriteFile(filepath.Join(f.path, name), []byte(text), 0o600); err != nil {
		f.t.Fatal(err)
	}
}

func (f folder) remove(name string) {
	f.t.Helper()
	if err := os.Remove(filepath.Join(f.path, name)); err != nil {
		f.t.Fatal(err)
	}
}

// broken is a definition whose only node that ends it is missing, on its third line.
func broken(name string) string {
	return `{"document":{"schema":"s","name":"` + name + `","version":"2"},"state_schema":{"type":"object"},
		"nodes":[{"id":"a","type":"start"},
		{"id":"z","type":"ending"}],
		"edges":[{"source":"__start__","target":"a"},{"source":"a","target":"z"}]}`
}

// TestADocumentInUseIsNotReadAgain: an engine keeps the documents of the programs that it runs.
func TestADocumentInUseIsNotReadAgain(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write("a.workflow.json", strings.Replace(broken("a"), "ending", "end", 1))
	c := catalog.New(f.path, catalog.Options{})
	first, err := c.ResolveWorkflow(t.Context(), "a", "")
	if err != nil {
		t.Fatal(err)
	}
	if again, err := c.ResolveWorkflow(t.Context(), "a", ""); err != nil || again != first {
		t.Errorf("read again, %v", err)
	}
	runtime.KeepAlive(first)
}

func refs(s *catalog.Snapshot) string {
	var list []string
	for _, w := range s.Workflows {
		list = append(list, w.Ref+"="+w.Version)
	}
	return strings.Join(list, " ")
}

// A file's life: it comes, breaks, is mended, breaks in another way and goes. Its last good version stays, and each change is logged
// once and told once.
func TestLifeOfAFile(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	var log bytes.Buffer
	c := catalog.New(f.path, catalog.Options{Log: slog.New(slog.NewTextHandler(&log, nil))})
	told := 0
	c.OnChange(func(*catalog.Snapshot) { told++ })
	const file = "one.workflow.json"
	for i, step := range []struct {
		text                string // "" removes the file
		refs, broken, place string
		log                 string
	}{
		{definitionText("one", "1"), "one=1", "", "", ""},
		{broken("one"), "one=1", "one", "line 3", "workflow file invalid"},
		{definitionText("one", "3"), "one=3", "", "", "workflow file valid again"},
		{"{", "one=3", "one", "line 1", "last good version 3"},
		{"", "", "", "", ""},
		{broken("one"), "", "one", "line 3", "no valid version"},
	} {
		if step.text == "" {
			f.remove(file)
		} else {
			f.write(file, step.text)
		}
		log.Reset()
		now := c.Look()
		if again := c.Look(); again != now {
			t.Errorf("step %d: nothing has changed, and there is another snapshot", i)
		}
		if got := refs(now); got != step.refs {
			t.Errorf("step %d: workflows %q, want %q", i, got, step.refs)
		}
		if told != i+1 {
			t.Errorf("step %d: told %d times", i, told)
		}
		if lines := strings.Count(log.String(), "\n"); step.log == "" && lines > 0 || step.log != "" && lines != 1 || !strings.Contains(log.String(), step.log) {
			t.Errorf("step %d: logged %s", i, log.String())
		}
		switch {
		case step.broken == "" && len(now.Broken) > 0:
			t.Errorf("step %d: broken %+v", i, now.Broken[0])
		case step.broken == "":
		case len(now.Broken) != 1 || now.Broken[0].File != file || now.Broken[0].Name != step.broken || !strings.Contains(now.Broken[0].Text(), step.place):
			t.Errorf("step %d: broken %+v", i, now.Broken)
		case step.refs != "" && (now.Broken[0].Kept == nil || now.Workflows[0].Broken != now.Broken[0]):
			t.Errorf("step %d: the last good version and its broken file do not know each other", i)
		}
	}
}

// A file that is written again within the same step of the file system's clock, with as many bytes, is read again.
func TestAChangeThatTheTimeDoesNotShow(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	c := catalog.New(f.path, catalog.Options{})
	path := filepath.Join(f.path, "one.workflow.json")
	now := time.Now()
	for _, version := range []string{"1", "2"} {
		f.write("one.workflow.json", definitionText("one", version))
		if err := os.Chtimes(path, now, now); err != nil {
			t.Fatal(err)
		}
		if got := refs(c.Look()); got != "one="+version {
			t.Errorf("version %s: %s", version, got)
		}
	}
	// Another file that takes its place is seen although its time is long past and the same.
	past := now.Add(-time.Hour)
	if err := os.Chtimes(path, past, past); err != nil {
		t.Fatal(err)
	}
	c.Look()
	f.write("new", definitionText("one", "3"))
	if err := errors.Join(os.Chtimes(filepath.Join(f.path, "new"), past, past), os.Rename(filepath.Join(f.path, "new"), path)); err != nil {
		t.Fatal(err)
	}
	if got := refs(c.Look()); got != "one=3" {
		t.Errorf("replaced: %s", got)
	}
}

// Watch finds a change within PollInterval, and ends with its context.
func TestWatch(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write("one.workflow.json", definitionText("one", "1"))
	synctest.Test(t, func(t *testing.T) {
		c := catalog.New(f.path, catalog.Options{})
		var told []string
		c.OnChange(func(now *catalog.Snapshot) { told = append(told, refs(now)) })
		ctx, stop := context.WithCancel(context.Background())
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			c.Watch(ctx)
		}()
		synctest.Wait()
		time.Sleep(10 * catalog.PollInterval)
		synctest.Wait()
		f.write("two.workflow.json", definitionText("two", "1"))
		time.Sleep(catalog.PollInterval)
		synctest.Wait()
		stop()
		<-ended
		if !slices.Equal(told, []string{"one=1", "one=1 two=1"}) {
			t.Errorf("told %q", told)
		}
	})
}

// A folder that cannot be read leaves what is known usable, and says why.
func TestAFolderThatGoes(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write("one.workflow.json", definitionText("one", "1"))
	c := catalog.New(f.path, catalog.Options{})
	c.Look()
	away := f.path + "-away"
	if err := os.Rename(f.path, away); err != nil {
		t.Fatal(err)
	}
	now := c.Look()
	if now.Err == nil || now.Err.Hint == "" || refs(now) != "one=1" {
		t.Errorf("away: %v, %s", now.Err, refs(now))
	}
	if _, err := c.ResolveWorkflow(t.Context(), "one", ""); err != nil {
		t.Errorf("away: %v", err)
	}
	if c.Look() != now {
		t.Error("still away is no change")
	}
	if err := os.Rename(away, f.path); err != nil {
		t.Fatal(err)
	}
	if now := c.Look(); now.Err != nil || refs(now) != "one=1" {
		t.Errorf("back: %v, %s", now.Err, refs(now))
	}
}

func TestFind(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	for file, text := range map[string]string{
		"one":  definitionText("one", "1"),
		"copy": definitionText("one", "1"), // the same definition
		"t1":   definitionText("twins", "1"),
		"t2":   definitionText("twins", "2"),
		"s1":   definitionText("same", "1"),
		"s2":   strings.Replace(definitionText("same", "1"), `"id":"z"`, `"id":"z","metadata":{}`, 1),
		"urn":  definitionText("urn:x:whole", "1"),
		"at":   definitionText("mail@home", "1"),
		"bad":  broken("bad"),
		"stem": "{",
	} {
		f.write(file+".workflow.json", text)
	}
	c := catalog.New(f.path, catalog.Options{})
	now := c.Look()
	hash := ""
	for _, w := range now.Workflows {
		if w.Name == "one" {
			hash = w.Hash
		}
		if found, err := now.Find(w.Ref); err != nil || found != w {
			t.Errorf("%s %s: its reference %q finds %v, %v", w.Name, w.File, w.Ref, found, err)
		}
	}
	for ref, want := range map[string]string{
		"one": "copy.workflow.json", "urn:example:one": "copy.workflow.json", "one@1": "copy.workflow.json", hash: "copy.workflow.json",
		"twins@2": "t2.workflow.json", "urn:x:twins@1": "t1.workflow.json", "urn:x:whole": "urn.workflow.json", "mail@home": "at.workflow.json",
		"mail@home@1": "at.workflow.json",
	} {
		if w, err := now.Find(ref); err != nil || w.File != want {
			t.Errorf("%s: found %v, %v", ref, w, err)
		}
	}
	for ref, want := range map[string]struct {
		code problem.Code
		says string
	}{
		"nobody": {problem.WorkflowNotFound, "not found: no definition in"}, "one@2": {problem.WorkflowNotFound, "not found: no definition in"}, "": {problem.WorkflowNotFound, ""},
		"twins": {problem.ValidationError, "t1.workflow.json and t2.workflow.json have the name"}, "same@1": {problem.ValidationError, "have the name"},
		"bad": {problem.ValidationError, "bad.workflow.json is invalid"}, "urn:x:bad": {problem.ValidationError, "is invalid"},
		"bad@1": {problem.ValidationError, "is invalid"}, "stem": {problem.ValidationError, "stem.workflow.json is invalid"},
	} {
		_, err := now.Find(ref)
		if e, ok := problem.As(err); !ok || e.Code != want.code || !strings.Contains(e.Error(), want.says) || e.Hint == "" && len(e.Findings) == 0 {
			t.Errorf("%s: %v, want %s …%s…", ref, err, want.code, want.says)
		}
	}
	// A pinned definition is that and no other, whatever is broken under the name: it may be looked for elsewhere.
	for _, ref := range []string{"bad", "one"} {
		if _, err := c.ResolveWorkflow(t.Context(), ref, strings.Repeat("0", 64)); !errors.Is(err, problem.WorkflowNotFound) {
			t.Errorf("%s pinned: %v", ref, err)
		}
	}
	if file, err := now.FileOf("bad"); err != nil || file != "bad.workflow.json" {
		t.Errorf("file of a broken one: %q, %v", file, err)
	}
	if _, err := now.FileOf("nobody"); err == nil {
		t.Error("nobody has a file")
	}
}

// A name belongs to the file that is good, not to the last good version of one that is broken.
func TestAGoodFileHasTheName(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write("a.workflow.json", definitionText("one", "1"))
	c := catalog.New(f.path, catalog.Options{})
	c.Look()
	f.write("a.workflow.json", "{")
	f.write("b.workflow.json", definitionText("one", "2"))
	if w, err := c.Look().Find("one"); err != nil || w.Version != "2" {
		t.Errorf("found %v, %v", w, err)
	}
}

// What Verify refuses counts as broken: the version before stays usable, and without one the name is refused with its reason.
func TestVerify(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	c := catalog.New(f.path, catalog.Options{Verify: func(d *definition.Document) error {
		if d.Signature() == nil {
			return problem.New(problem.ValidationError, "it is not signed")
		}
		return nil
	}})
	signed := strings.Replace(definitionText("one", "1"), `{"document"`, `{"signature":{"value":"e30.e30.e30"},"document"`, 1)
	f.write("one.workflow.json", definitionText("one", "1"))
	if _, err := c.ResolveWorkflow(t.Context(), "one", ""); !errors.Is(err, problem.ValidationError) || !strings.Contains(err.Error(), "not signed") {
		t.Errorf("unsigned: %v", err)
	}
	f.write("one.workflow.json", signed)
	d, err := c.ResolveWorkflow(t.Context(), "one", "")
	if err != nil || d.Signature() == nil {
		t.Fatalf("signed: %v, %v", d, err)
	}
	f.write("one.workflow.json", definitionText("one", "2"))
	if d, err := c.ResolveWorkflow(t.Context(), "one", ""); err != nil || d.Signature() == nil {
		t.Errorf("unsigned again: %v, %v", d, err)
	}
}

// Only regular files are read, symbolic links to them included, which is how containers mount what is configured.
func TestWhatIsNoFile(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	f.write("target", definitionText("linked", "1"))
	if err := errors.Join(
		os.Symlink("target", filepath.Join(f.path, "a.workflow.json")),
		os.Symlink("nowhere", filepath.Join(f.path, "b.workflow.json")),
		os.Symlink(f.path, filepath.Join(f.path, "c.workflow.json")),
		os.Mkdir(filepath.Join(f.path, "d.workflow.json"), 0o700),
	); err != nil {
		t.Skipf("this user may make no symbolic links: %v", err)
	}
	now := catalog.New(f.path, catalog.Options{}).Look()
	if refs(now) != "linked=1" || len(now.Broken) != 2 || now.Broken[0].File != "b.workflow.json" || now.Broken[1].File != "c.workflow.json" {
		t.Errorf("workflows %s, broken %v", refs(now), now.Broken)
	}
}

// A folder of more files than MaxFiles is read in part, and says so.
func TestTooManyFiles(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	for i := range catalog.MaxFiles + 1 {
		f.write(fmt.Sprintf("%04d.workflow.json", i), definitionText(fmt.Sprint("w", i), "1"))
	}
	now := catalog.New(f.path, catalog.Options{}).Look()
	if len(now.Workflows) != catalog.MaxFiles || now.Err == nil || !strings.Contains(now.Err.Error(), "1000.workflow.json and later files") {
		t.Errorf("%d workflows, %v", len(now.Workflows), now.Err)
	}
}

func TestInputSchema(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	text := strings.Replace(definitionText("one", "1"), `"version":"1"`, `"version":"1","description":" Does it. "`, 1)
	f.write("one.workflow.json", strings.Replace(text, `"type":"start"`, `"type":"start","config":{"input_schema":{"type":"object","required":["x"]}}`, 1))
	f.write("two.workflow.json", definitionText("two", "1"))
	// Without an input_schema it is what the state must have from the first.
	f.write("three.workflow.json", strings.Replace(definitionText("three", "1"), `"state_schema":{"type":"object"}`, `"state_schema":{"type":"object","required":["list","n","any"],
		"properties":{"list":{"type":"array","reducer":"append"},"n":{"anyOf":[{"$ref":"#/$defs/n"}]},"later":{"type":"string"}},"$defs":{"n":{"type":"integer"}}}`, 1))
	w := catalog.New(f.path, catalog.Options{}).Look().Workflows
	if len(w) != 3 || w[0].Description != "Does it." || fmt.Sprint(w[0].InputSchema["required"]) != "[x]" || w[2].InputSchema != nil {
		t.Fatalf("got %+v", w)
	}
	if got := string(jsonvalue.Canonical(w[1].InputSchema)); got != `{"properties":{"any":{},"list":{"type":"array"},"n":{}},"required":["list","n","any"],"type":"object"}` {
		t.Errorf("of the state: %s", got)
	}
}

func TestSearch(t *testing.T) {
	t.Parallel()
	f := newFolder(t)
	for name, description := range map[string]string{
		"refund-approval": "Asks a person whether a customer is refunded.",
		"invoice":         "Writes an invoice. Refunds are another workflow.",
		"ticket-triage":   "Reads a support ticket and decides where it belongs.",
	} {
		f.write(name+".workflow.json", strings.Replace(definitionText(name, "1"), `"version":"1"`, `"version":"1","description":"`+description+`"`, 1))
	}
	now := catalog.New(f.path, catalog.Options{}).Look()
	for query, want := range map[string]string{
		"refund":                 "refund-approval invoice",
		"REFUNDS":                "refund-approval invoice",
		"approve a refund":       "refund-approval invoice",
		"where belongs a ticket": "ticket-triage",
		"the workflow":           "invoice refund-approval ticket-triage",
		"":                       "invoice refund-approval ticket-triage",
		"zebra":                  "",
	} {
		var names []string
		for _, w := range now.Search(query) {
			names = append(names, w.Name)
		}
		if got := strings.Join(names, " "); got != want {
			t.Errorf("%q: %s, want %s", query, got, want)
		}
	}
}

// BenchmarkLook measures a look at a folder of 100 definitions in which nothing has changed for a while, as Watch takes one every
// PollInterval, and a first one, which reads them all.
func BenchmarkLook(b *testing.B) {
	dir := b.TempDir()
	text, err := os.ReadFile("../../examples/lighthouse/lighthouse.workflow.json")
	if err != nil {
		b.Fatal(err)
	}
	past := time.Now().Add(-time.Hour)
	for i := range 100 {
		path := filepath.Join(dir, fmt.Sprint(i, ".workflow.json"))
		named := bytes.Replace(text, []byte(`"name": "lighthouse"`), fmt.Appendf(nil, `"name": "w%d"`, i), 1)
		if err := errors.Join(os.WriteFile(path, named, 0o600), os.Chtimes(path, past, past)); err != nil {
			b.Fatal(err)
		}
	}
	c := catalog.New(dir, catalog.Options{})
	if n := len(c.Look().Workflows); n != 100 {
		b.Fatalf("%d workflows", n)
	}
	b.Run("unchanged", func(b *testing.B) {
		for b.Loop() {
			c.Look()
		}
	})
	b.Run("first", func(b *testing.B) {
		for b.Loop() {
			catalog.New(dir, catalog.Options{}).Look()
		}
	})
}
