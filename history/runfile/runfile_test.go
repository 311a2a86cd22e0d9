package runfile_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historytest"
	"github.com/workflows-engine/workflows-engine/history/runfile"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
)

// records makes records in the notation of traces.
func records(t testing.TB, id string, lines ...string) []history.Record {
	t.Helper()
	b := historytest.NewTrace(t, id).Batch(lines...)
	for i := range b.Records {
		b.Records[i].Foreign = i == 3
		b.Records[i].Seq = int64(i + 1)
		b.Records[i].Raw = b.Records[i].AppendPayload(nil, id)
	}
	return b.Records
}

// sample is a file with a definition, a run and its subworkflow.
func sample(t testing.TB, redact bool) []byte {
	t.Helper()
	text := []byte(`{"nodes":[]}`)
	sum := sha256.Sum256(text)
	var out bytes.Buffer
	w := runfile.NewWriter(&out, redact)
	for _, err := range []error{
		w.Header("r", historytest.Begin),
		w.Definition(history.StoredDefinition{Hash: hex.EncodeToString(sum[:]), Name: "w", Version: "1", Text: text, Signatures: [][]byte{[]byte(`{"value":"a"}`), []byte(`{"value":"b"}`)}}),
		w.Run(runfile.Run{ExecutionID: "r", Records: records(t, "r", append(historytest.Start("w", "in_process"), `E StateUpdated a {"state":{"token":"hush","s":"a\u2028<b>"}}`)...)}),
		w.Run(runfile.Run{ExecutionID: "r:sub:v", Records: records(t, "r:sub:v", historytest.Start("w", "in_process")...)}),
		w.Trailer(),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	return out.Bytes()
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	t.Parallel()
	text := sample(t, false)
	f, err := runfile.Read(iotest.OneByteReader(bytes.NewReader(text)))
	if err != nil {
		t.Fatal(err)
	}
	if f.ExecutionID != "r" || f.Redacted || len(f.Definitions) != 1 || len(f.Runs) != 2 || len(f.Runs[0].Records) != 6 || len(f.Runs[1].Records) != 5 {
		t.Fatalf("%+v", f)
	}
	var again bytes.Buffer
	w := runfile.NewWriter(&again, false)
	w.Header(f.ExecutionID, historytest.Begin)
	w.Definition(f.Definitions[0])
	for _, r := range f.Runs {
		w.Run(r)
	}
	if err := w.Trailer(); err != nil || !bytes.Equal(again.Bytes(), text) {
		t.Errorf("written again\n%s, was\n%s", &again, text)
	}
}

func TestRedactedFiles(t *testing.T) {
	t.Parallel()
	text := sample(t, true)
	if bytes.Contains(text, []byte("hush")) || !bytes.Contains(text, []byte(history.Redacted)) {
		t.Errorf("nothing is masked: %s", text)
	}
	f, err := runfile.Read(bytes.NewReader(text))
	if err != nil || !f.Redacted {
		t.Errorf("%+v, %v", f, err)
	}
}

// sealed gives a text with a trailer that fits it, so that only what was changed is wrong.
func sealed(lines []string) string {
	text := strings.Join(lines[:len(lines)-1], "\n") + "\n"
	sum := sha256.Sum256([]byte(text))
	last := lines[len(lines)-1]
	if i := strings.Index(last, `"sha256":"`); i >= 0 {
		last = last[:i] + `"sha256":"` + hex.EncodeToString(sum[:]) + `"}`
	}
	return text + last + "\n"
}

func TestWrongFiles(t *testing.T) {
	t.Parallel()
	good := strings.Split(strings.TrimSuffix(string(sample(t, false)), "\n"), "\n")
	if _, err := runfile.Read(strings.NewReader(sealed(good))); err != nil {
		t.Fatal(err)
	}
	replace := func(line int, old, with string) func([]string) []string {
		return func(lines []string) []string {
			changed := strings.Replace(lines[line-1], old, with, 1)
			if changed == lines[line-1] {
				t.Errorf("line %d has no %s: %s", line, old, lines[line-1])
			}
			lines[line-1] = changed
			return lines
		}
	}
	without := func(line int) func([]string) []string {
		return func(lines []string) []string { return append(lines[:line-1:line-1], lines[line:]...) }
	}
	for name, c := range map[string]struct {
		change func([]string) []string
		want   string
	}{
		"no header":              {without(1), "line 1: expected the header as the first line"},
		"two headers":            {func(l []string) []string { return append([]string{l[0]}, l...) }, "line 2: expected the header"},
		"another format":         {replace(1, "workflows-engine/runs", "x"), `line 1: expected the format`},
		"a newer version":        {replace(1, `"version":1`, `"version":2`), "line 1: the file has version 2"},
		"a version in words":     {replace(1, `"version":1`, `"version":"1"`), "line 1: the file has version"},
		"an unknown member":      {replace(1, `"version":1`, `"version":1,"more":1`), `unknown field "more"`},
		"an unknown type":        {replace(2, `"definition"`, `"blob"`), `line 2: unknown line type "blob"`},
		"a member too many":      {replace(2, `"hash"`, `"seq":1,"hash"`), `line 2: a definition has no "seq"`},
		"foreign elsewhere":      {replace(2, `"hash"`, `"foreign":true,"hash"`), `line 2: a definition has no "foreign"`},
		"a member too few":       {replace(4, `"kind":"event",`, ``), `line 4: the record has no "kind"`},
		"a definition's text":    {replace(2, `{"nodes":[]}`, `{"nodes":[1]}`), "line 2: the definition \"w\" does not match"},
		"a signature":            {replace(2, `{"value":"a"}`, `{"value":1}`), "line 2: expected signature blocks"},
		"signatures":             {replace(2, `[{"value":"a"},{"value":"b"}]`, `3`), "line 2: invalid line"},
		"another run":            {replace(3, `"execution_id":"r"`, `"execution_id":"x"`), `line 3: expected run "r" first`},
		"a stranger":             {replace(10, `r:sub:v`, `x`), `line 10: run "x" is not a subworkflow of "r"`},
		"a run twice":            {replace(10, `r:sub:v`, `r`), `line 10: run "r" is not a subworkflow`},
		"no records":             {replace(10, `"records":5`, `"records":0`), `line 10: run "r:sub:v" has no records`},
		"a record too few":       {without(9), `line 9: 1 records of run "r" are missing`},
		"a record too many":      {replace(3, `"records":6`, `"records":5`), "line 9: record without a run, or more records"},
		"a gap":                  {replace(5, `"seq":2`, `"seq":3`), "line 5: record 3 of run \"r\": RECORD_GAP"},
		"a kind":                 {replace(5, `"command"`, `"event"`), "line 5: record 2 of run \"r\": RECORD_UNREADABLE"},
		"a name":                 {replace(5, `"ScheduleNode"`, `"Schedule"`), "line 5: record 2 of run \"r\": RECORD_UNREADABLE"},
		"a time":                 {replace(5, `T01:00:00.000Z`, ``), "line 5: expected created_at"},
		"a time of another zone": {replace(5, `.000Z`, `.000+01:00`), "line 5: expected created_at"},
		"a payload":              {replace(5, `"payload":{`, `"payload":[{`), "line 5: invalid line"},
		"a payload that is none": {replace(5, `"payload":{"executionId":"r","nodeId":"begin"}`, `"payload":3`), "line 5: the payload cannot be read"},
		"another's payload":      {replace(5, `"executionId":"r"`, `"executionId":"x"`), "line 5: the payload is not of run"},
		"two objects":            {replace(5, `{"type"`, `{}{"type"`), `line 5: unexpected text`},
		"an empty line":          {replace(5, good[4], ""), "line 5: invalid line"},
		"bytes":                  {replace(5, "begin", "\xff"), "line 5: the line is not UTF-8"},
		"a late definition":      {func(l []string) []string { return append(append(l[:15:15], l[1]), l[15:]...) }, "line 16: expected definitions before runs"},
		"counts":                 {replace(16, `"runs":2`, `"runs":3`), "line 16: the file has 1 definitions, 2 runs and 11 records"},
		"a second trailer":       {func(l []string) []string { return append(l, "{}") }, "line 17: unexpected text after the trailer"},
		"no runs":                {func(l []string) []string { return []string{l[0], l[15]} }, "line 2: the file has no run"},
	} {
		lines := c.change(append([]string(nil), good...))
		text := sealed(lines)
		if name == "a second trailer" {
			text = strings.Join(good, "\n") + "\n{}\n"
		}
		_, err := runfile.Read(strings.NewReader(text))
		e, ok := problem.As(err)
		if !ok || e.Code != problem.ImportInvalid || !strings.Contains(e.Error(), c.want) || e.At.Line == 0 || e.Hint == "" {
			t.Errorf("%s: got %v, want %s", name, err, c.want)
		}
	}
}

// TestIntegersOfAFileDoNotChange: a record with a value that would be read as another one is refused, unless another engine
// wrote it.
func TestIntegersOfAFileDoNotChange(t *testing.T) {
	t.Parallel()
	for value, kept := range map[string]bool{"1234567890123456789": false, "9223372036854775807": false, "1234567890123456800": true, "9007199254740993": false, "0.1": true} {
		lines := strings.Split(strings.TrimSuffix(string(sample(t, false)), "\n"), "\n")
		if lines[8] = strings.Replace(lines[8], `"s":`, `"n":`+value+`,"s":`, 1); !strings.Contains(lines[8], value) {
			t.Fatal(lines[8])
		}
		_, err := runfile.Read(strings.NewReader(sealed(lines)))
		if p, ok := problem.As(err); (err == nil) != kept || !kept && (!ok || p.Code != problem.ImportInvalid || !strings.Contains(p.Error(), "line 9: a value of the payload would change")) {
			t.Errorf("%s: %v", value, err)
		}
		lines[8] = strings.Replace(lines[8], `"payload":`, `"foreign":true,"payload":`, 1)
		if _, err := runfile.Read(strings.NewReader(sealed(lines))); err != nil {
			t.Errorf("%s of another engine: %v", value, err)
		}
	}
}

// TestCutFiles cuts a file off at every place, and flips a bit of every byte.
func TestCutFiles(t *testing.T) {
	t.Parallel()
	text := sample(t, false)
	for i := range text {
		if _, err := runfile.Read(bytes.NewReader(text[:i])); !errors.Is(err, problem.ImportInvalid) {
			t.Fatalf("cut off at %d: %v", i, err)
		}
		flipped := bytes.Clone(text)
		flipped[i] ^= 1
		if _, err := runfile.Read(bytes.NewReader(flipped)); err == nil && !sameInEffect(text, i) {
			t.Fatalf("a bit of byte %d flipped, and nobody noticed: %s", i, flipped[max(0, i-20):min(len(text), i+20)])
		}
	}
	broken := errors.New("broken")
	if _, err := runfile.Read(iotest.TimeoutReader(iotest.OneByteReader(bytes.NewReader(text)))); err == nil {
		t.Error("a reader's error was lost")
	}
	if _, err := runfile.Read(iotest.ErrReader(broken)); !errors.Is(err, broken) {
		t.Errorf("got %v", err)
	}
}

// sameInEffect reports whether a byte is one of the trailer's that JSON readers do not distinguish, such as the case of a
// member's name.
func sameInEffect(text []byte, i int) bool {
	last := bytes.LastIndexByte(text[:len(text)-1], '\n')
	return i > last && text[i] != '"' && (text[i] < '0' || text[i] > '9')
}

func FuzzRead(f *testing.F) {
	f.Add(sample(f, false))
	f.Add(sample(f, true))
	for _, line := range strings.SplitAfter(string(sample(f, false)), "\n") {
		f.Add([]byte(line))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := runfile.Read(bytes.NewReader(text))
		if err != nil {
			if _, ok := problem.As(err); !ok {
				t.Fatalf("an error without a code: %v", err)
			}
			return
		}
		// What was accepted can be written, and read again as the same.
		var out bytes.Buffer
		w := runfile.NewWriter(&out, false)
		w.Header(file.ExecutionID, time.Time{})
		for _, d := range file.Definitions {
			w.Definition(d)
		}
		for _, r := range file.Runs {
			w.Run(r)
		}
		w.Trailer()
		again, err := runfile.Read(&out)
		if file.Redacted {
			return // its definitions have other hashes than the file says
		}
		if err != nil || len(again.Runs) != len(file.Runs) {
			t.Fatalf("%v: %s", err, jsonvalue.AppendString(nil, out.String()))
		}
	})
}

// endless is a reader without an end.
type endless struct {
	text []byte
	read int64
}

func (e *endless) Read(p []byte) (int, error) {
	n := 0
	for n < len(p) {
		n += copy(p[n:], e.text)
	}
	e.read += int64(n)
	return n, nil
}

// TestEndlessFiles: what is no file of runs is read no further than that shows.
func TestEndlessFiles(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"\x00": "line 1: the line is longer than 65536 bytes", "y\n": "line 1: invalid line", "{": "line 1: the line is longer than 65536 bytes",
		`{"type":"header","format":"workflows-engine/runs","version":1,"execution_id":"r","exported_at":"now"}` + "\n": "line 2: expected the header as the first line",
	} {
		in := &endless{text: []byte(text)}
		_, err := runfile.Read(in)
		if e, ok := problem.As(err); !ok || e.Code != problem.ImportInvalid || !strings.Contains(err.Error(), want) || in.read > 1<<18 {
			t.Errorf("%q: %v after %d bytes", text, err, in.read)
		}
	}
}

// FuzzReadRecords changes the lines of a file whose counts and hash are made to fit: what is behind the checks of the whole file. Whatever is
// accepted is what an engine can have written, as far as no definition is needed to tell.
func FuzzReadRecords(f *testing.F) {
	good := strings.Split(strings.TrimSuffix(string(sample(f, false)), "\n"), "\n")
	for i := 1; i < len(good)-1; i++ {
		f.Add(uint8(i), good[i])
	}
	f.Add(uint8(3), strings.Replace(good[3], `"payload":{`, `"payload":{"depth":-3,`, 1))
	f.Add(uint8(3), strings.Replace(good[3], "in_process", "evil", 1))
	f.Add(uint8(4), strings.Replace(good[4], "2026", "9999", 1))
	f.Fuzz(func(t *testing.T, at uint8, line string) {
		lines := append([]string(nil), good...)
		lines[1+int(at)%(len(lines)-2)] = line
		file, err := runfile.Read(strings.NewReader(sealed(lines)))
		if err != nil {
			if p, ok := problem.As(err); !ok || p.Code != problem.ImportInvalid || p.Hint == "" {
				t.Fatalf("an error without a code or a hint: %v", err)
			}
			return
		}
		for _, r := range file.Runs {
			e := history.Project(r.ExecutionID, r.Records)
			if e.Depth < 0 || e.Depth > len(r.ExecutionID) || e.Seq != int64(len(r.Records)) || e.CreatedAt.Year() < 1970 || e.UpdatedAt.Year() > 2262 {
				t.Errorf("accepted %+v", e)
			}
			if e.Parent != "" && !history.Descends(r.ExecutionID, e.Parent) && !r.Records[0].Foreign {
				t.Errorf("accepted %q as the parent of %q", e.Parent, r.ExecutionID)
			}
		}
	})
}
