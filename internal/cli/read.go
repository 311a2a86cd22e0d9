package cli

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// standardInput is the file name for standard input.
const standardInput = "-"

// source is the text of a definition and where it came from.
type source struct {
	file string
	text []byte
	yaml bool
}

// readSource reads a definition. The format is "json", "yaml", or "" to go by the file's extension.
func (a *app) readSource(file, format string) (source, error) {
	s := source{file: file}
	switch format {
	case "":
		extension := strings.ToLower(filepath.Ext(file))
		s.yaml = extension == ".yaml" || extension == ".yml"
	case "json", "yaml":
		s.yaml = format == "yaml"
	default:
		return s, usage("invalid value %q for --format", format).WithHint("Write json or yaml.")
	}
	var err error
	if s.text, err = a.readBegin(file, definition.MaxBytes+1); errors.Is(err, fs.ErrNotExist) {
		if e, ok := problem.As(err); ok {
			return s, e.WithHint("%s", suggest.Hint(a.nearFile(file)))
		}
	}
	return s, err
}

// nearFile suggests the definition for a missing file: NAME.workflow.yaml for NAME, or the file in its directory with the most similar name;
// "" without one.
func (a *app) nearFile(file string) string {
	entries, err := os.ReadDir(filepath.Dir(a.path(file)))
	if err != nil {
		return ""
	}
	stem := func(name string) string {
		name = strings.TrimSuffix(name, filepath.Ext(name))
		return strings.TrimSuffix(name, ".workflow")
	}
	folder, base := filepath.Split(file)
	var stems []string
	names := map[string]string{}
	for _, e := range entries {
		if kind, name := filepath.Ext(e.Name()), stem(e.Name()); strings.HasSuffix(e.Name(), ".workflow"+kind) && (kind == ".json" || kind == ".yaml" || kind == ".yml") {
			stems, names[name] = append(stems, name), folder+e.Name()
		}
	}
	if same := names[stem(base)]; same != "" {
		return same
	}
	return names[suggest.Nearest(stem(base), stems)]
}

// parse reads the text into a document. Its error holds every finding of the text.
func (s source) parse() (*definition.Document, error) {
	if s.yaml {
		return definition.ParseYAML(s.text)
	}
	return definition.Parse(s.text)
}

// readDefinition reads a definition by its file, nil for "".
func (a *app) readDefinition(file string) (*definition.Document, error) {
	if file == "" {
		return nil, nil
	}
	s, err := a.readSource(file, "")
	if err != nil {
		return nil, err
	}
	document, err := s.parse()
	if e, ok := problem.As(err); ok {
		named := *e
		named.Message = s.name() + ": " + e.Message
		return nil, &named
	}
	return document, err
}

// name is the file as shown to people.
func (s source) name() string {
	if s.file == standardInput {
		return "<stdin>"
	}
	return s.file
}

// path returns a path of the user as an absolute path.
func (a *app) path(file string) string {
	if filepath.IsAbs(file) {
		return file
	}
	return filepath.Join(a.env.Directory, file)
}

// readObject reads a JSON object from an argument: JSON text, "@file", or "-" for standard input. Blank is {}.
func (a *app) readObject(flag, argument string) (map[string]any, error) {
	text := []byte(argument)
	if file, isFile := strings.CutPrefix(argument, "@"); isFile || argument == standardInput {
		if !isFile {
			file = standardInput
		}
		var err error
		if text, err = a.readAll(file); err != nil {
			return nil, err
		}
	}
	if strings.TrimSpace(string(text)) == "" {
		return map[string]any{}, nil
	}
	node, faults := jsonvalue.Parse(text, 0, 0)
	if len(faults) > 0 {
		return nil, usage("invalid JSON in %s", flag).WithCause(faults[0]).
			WithHint("Write JSON text in single quotes, @file for a file, or - for standard input.")
	}
	object, ok := node.Value().(map[string]any)
	if !ok {
		return nil, usage("%s must be a JSON object", flag).WithHint(`Write an object, as in '{"name":"value"}'.`)
	}
	return object, nil
}

// documentHead is document.name and document.version, for display.
func documentHead(d *definition.Document) (name, version string) {
	root, _ := d.Value().(map[string]any)
	head, _ := root["document"].(map[string]any)
	name, _ = head["name"].(string)
	version, _ = head["version"].(string)
	return name, version
}

// maxTextBytes limits a value or a task, as the HTTP API and the MCP server limit a call.
const maxTextBytes = 16 << 20

// interruptible is a reader whose Read returns when ctx ends. Reading a terminal or a pipe cannot be cancelled, nor can opening a
// pipe: the goroutine may outlive the call, and ends with the process.
type interruptible struct {
	ctx  context.Context
	from io.Reader
	// reading receives the bytes of the goroutine; nil without one.
	reading chan chunk
	rest    chunk
}

// chunk is the outcome of a Read.
type chunk struct {
	text []byte
	err  error
}

// Read implements io.Reader.
func (r *interruptible) Read(p []byte) (int, error) {
	if err := r.ctx.Err(); err != nil {
		return 0, err
	}
	if len(r.rest.text) == 0 && r.rest.err == nil {
		if r.reading == nil {
			reading := make(chan chunk, 1)
			r.reading = reading
			go func() {
				buffer := make([]byte, 64<<10)
				n, err := r.from.Read(buffer)
				reading <- chunk{buffer[:n], err}
			}()
		}
		select {
		case r.rest = <-r.reading:
			r.reading = nil
		case <-r.ctx.Done():
			return 0, r.ctx.Err()
		}
	}
	n := copy(p, r.rest.text)
	if r.rest.text = r.rest.text[n:]; n > 0 {
		return n, nil
	}
	err := r.rest.err
	r.rest.err = nil // a terminal can be read further after its end
	return 0, err
}

// fileReader reads a file, which it opens at the first Read: opening a pipe waits for its writer.
type fileReader struct {
	path string
	file *os.File
}

// Read implements io.Reader.
func (r *fileReader) Read(p []byte) (int, error) {
	if r.file == nil {
		file, err := os.Open(r.path)
		if err != nil {
			return 0, err
		}
		r.file = file
	}
	n, err := r.file.Read(p)
	if err != nil {
		_ = r.file.Close() // read-only
	}
	return n, err
}

// unnamed returns an error of the file system without its path: the message has the path as the user wrote it.
func unnamed(err error) error {
	if e, ok := errors.AsType[*fs.PathError](err); ok {
		return e.Err
	}
	return err
}

// readAll reads a file that the command line names, or standard input for "-", until the command is interrupted.
func (a *app) readAll(file string) ([]byte, error) {
	return a.readLimited(file, maxTextBytes+1, func(text []byte) error {
		if len(text) > maxTextBytes {
			return fmt.Errorf("more than %d bytes", maxTextBytes)
		}
		return nil
	})
}

// readBegin is readAll for the first bytes of a file. A parser refuses a text that is longer than its limit, so it needs one byte more.
func (a *app) readBegin(file string, most int64) ([]byte, error) {
	return a.readLimited(file, most, func([]byte) error { return nil })
}

// readLimited reads the first bytes of a file and checks them, so that the error of the check names the file.
func (a *app) readLimited(file string, most int64, check func(text []byte) error) (text []byte, err error) {
	err = a.reading(file, func(in io.Reader) (err error) {
		if text, err = io.ReadAll(io.LimitReader(in, most)); err != nil {
			return err
		}
		return check(text)
	})
	return text, err
}

// reading calls read with a file, or with standard input.
func (a *app) reading(file string, read func(io.Reader) error) error {
	in, name := a.stdin, "standard input"
	switch {
	case file != standardInput:
		in, name = &interruptible{ctx: a.ctx, from: &fileReader{path: a.path(file)}}, file
	case a.interactive:
		end := "Ctrl-D"
		if runtime.GOOS == "windows" {
			end = "Ctrl-Z and Enter"
		}
		a.say("reading standard input; end it with %s\n", end)
	}
	err := read(in)
	if _, said := problem.As(err); err == nil || said {
		return err
	}
	if a.ctx.Err() != nil {
		return a.ctx.Err()
	}
	return usage("cannot read %s", name).WithCause(unnamed(err))
}
