package catalog

import (
	"cmp"
	"crypto/sha256"
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/lint"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// suffixes of files that hold definitions, with the parser for each.
var suffixes = []struct {
	suffix string
	parse  func([]byte) (*definition.Document, error)
}{
	{".workflow.json", definition.Parse},
	{".workflow.yaml", definition.ParseYAML},
	{".workflow.yml", definition.ParseYAML},
}

// parserOf returns the parser for a file, and whether it is one that holds a definition.
func parserOf(name string) (parse func([]byte) (*definition.Document, error), ok bool) {
	for _, s := range suffixes {
		if strings.HasSuffix(name, s.suffix) {
			return s.parse, true
		}
	}
	return nil, false
}

// stem is a file's name without the suffix.
func stem(name string) string {
	for _, s := range suffixes {
		if rest, ok := strings.CutSuffix(name, s.suffix); ok {
			return rest
		}
	}
	return name
}

// content is the content of a file when it was read. Snapshots compare it by address.
type content struct {
	sum    [sha256.Size]byte
	good   *Workflow // the last version that is good; nil if there was none
	broken *Broken   // nil if the file is good now
}

// file is a definition's file as it was last read.
type file struct {
	*content
	info fs.FileInfo
	// settled is set once a later change also changes the modification time: the file is older than the coarsest step of a file system's clock.
	settled bool
}

// settledAfter is the coarsest step of a file system's times, FAT's.
const settledAfter = 2 * time.Second

// read returns the current content of a file; before is its earlier content, nil for a new file. The text is read if the file may have changed.
func (c *Catalog) read(info fs.FileInfo, before *file) *file {
	now := &file{info: info, settled: time.Since(info.ModTime()) > settledAfter}
	if before != nil && before.settled && sameFile(before.info, info) {
		now.content = before.content
		return now
	}
	text, err := readText(filepath.Join(c.folder, info.Name()))
	sum := sha256.Sum256(text)
	if err != nil {
		sum = sha256.Sum256([]byte(err.Error()))
	}
	if before != nil && before.sum == sum {
		now.content = before.content
		return now
	}
	now.content = &content{sum: sum}
	if before != nil {
		now.good = before.good
	}
	w, broken := c.judge(info.Name(), text, err)
	if broken == nil {
		now.good = w
		return now
	}
	broken.Kept, now.broken = now.good, broken
	return now
}

func sameFile(a, b fs.FileInfo) bool {
	return a.Size() == b.Size() && a.ModTime().Equal(b.ModTime()) && a.Mode() == b.Mode() && os.SameFile(plain(a), plain(b))
}

func plain(info fs.FileInfo) fs.FileInfo {
	if n, ok := info.(named); ok {
		return n.FileInfo
	}
	return info
}

// readText reads a file.
func readText(path string) ([]byte, error) {
	f, _, err := regularfile.Open(path)
	if err != nil {
		if e, ok := errors.AsType[*fs.PathError](err); ok {
			err = e.Err
		}
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, definition.MaxBytes+1)) // the parser rejects a longer text
}

// judge makes a workflow from a file's text, or returns its findings.
func (c *Catalog) judge(name string, text []byte, unread error) (*Workflow, *Broken) {
	broken := &Broken{File: name, Name: stem(name)}
	refuse := func(err error) (*Workflow, *Broken) {
		e, ok := problem.As(err)
		if !ok {
			e = problem.New(problem.ValidationError, "cannot read the file").WithCause(err)
		}
		broken.Err = e
		return nil, broken
	}
	if unread != nil {
		return refuse(unread)
	}
	parse, _ := parserOf(name)
	doc, err := parse(text)
	if err != nil {
		return refuse(err)
	}
	broken.Name = cmp.Or(head(doc).text("name"), broken.Name)
	prog, findings := lint.Compile(doc, lint.Options{})
	if prog == nil {
		return refuse(definition.Refusal(findings))
	}
	if c.opts.Verify != nil {
		if err := c.opts.Verify(doc); err != nil {
			return refuse(err)
		}
	}
	return newWorkflow(name, prog, findings, text), nil
}
