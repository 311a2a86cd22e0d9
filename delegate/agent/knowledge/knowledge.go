// Package knowledge gives agents folders of texts to search and to read.
//
//	library, err := knowledge.New(knowledge.Config{Path: "knowledge"})
//	tools, err := library.Tools([]string{"hr", "sales/q1"})
//
// Each base is a folder below the path. Files in Markdown, plain text, JSON, CSV and HTML are cut into sections at their headings, and
// search_knowledge finds the sections that have most words of a query. The index is in memory, and renewed at each search where a file has
// another size or time. read_knowledge returns a section, or a file, by the reference that a search has found, such as "hr/leave.md#carry-over".
// No reference, and no symbolic link, leads out of a base.
package knowledge

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Defaults of Config, and bounds.
const (
	DefaultMaxSearchResults = 5
	DefaultMaxReadBytes     = 10_000

	// MaxFileBytes is how large a file may be.
	MaxFileBytes = 4 << 20
	// MaxFiles and MaxBytes limit the index of a base. Further files, in order of their names, are left out, and a search reports it.
	MaxFiles = 10_000
	MaxBytes = 64 << 20
)

// Config configures a library. Only Path is required.
type Config struct {
	// Path is the folder of the bases.
	Path string
	// MaxSearchResults is how many sections a search returns; 0 means DefaultMaxSearchResults.
	MaxSearchResults int
	// MaxReadBytes is how much of a text is read at once; 0 means DefaultMaxReadBytes.
	MaxReadBytes int
}

// Library is a folder of bases, with their index. It is safe for concurrent use.
type Library struct {
	config Config

	mu sync.Mutex
	// files are the indexed files, by reference.
	files map[string]*file
}

// New checks that the folder is there. The error has the code AGENT_CONFIG_INVALID.
func New(c Config) (*Library, error) {
	c.MaxSearchResults = cmp.Or(max(c.MaxSearchResults, 0), DefaultMaxSearchResults)
	c.MaxReadBytes = cmp.Or(max(c.MaxReadBytes, 0), DefaultMaxReadBytes)
	l := &Library{config: c, files: map[string]*file{}}
	root, err := os.OpenRoot(c.Path)
	if err != nil {
		return nil, problem.New(problem.AgentConfigInvalid, "the folder of the knowledge bases cannot be opened").WithCause(err)
	}
	return l, root.Close()
}

// Check returns an error if there is no base with a name. A base may be a folder within another one, as in "sales/q1".
func (l *Library) Check(base string) error {
	if !plainPath(base) {
		return problem.New(problem.AgentConfigInvalid, "%q is not the name of a knowledge base", base).
			WithHint("Write the folder, with slashes, as in sales/q1; no part of it begins with a dot.")
	}
	root, err := l.open(base)
	if err != nil {
		return problem.New(problem.AgentConfigInvalid, "there is no knowledge base %q", base).WithCause(reason(err))
	}
	return root.Close()
}

// open opens the folder of a base as a root that no path leaves. It is opened at each use, so that a replaced folder is found.
func (l *Library) open(base string) (*os.Root, error) {
	all, err := os.OpenRoot(l.config.Path)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return all.OpenRoot(base)
}

// plainPath reports whether a path can be written in one way only, and names nothing hidden.
func plainPath(name string) bool {
	if !fs.ValidPath(name) || name == "." || !utf8.ValidString(name) {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") {
			return false
		}
	}
	return !strings.ContainsFunc(name, func(r rune) bool { return r == '\\' || r == '#' || r == ':' || unicode.IsControl(r) })
}

// within reports whether a path is a folder or is in it.
func within(name, folder string) bool {
	rest, ok := strings.CutPrefix(name, folder)
	return ok && (rest == "" || rest[0] == '/')
}

// reason is an error of the file system without the path of the operator's folder.
func reason(err error) error {
	if p, ok := errors.AsType[*fs.PathError](err); ok {
		return p.Err
	}
	return err
}

// format is the form of a file, by the end of its name; "" for one that cannot be read.
func format(name string) string {
	switch end := strings.ToLower(path.Ext(name)); end {
	case ".md", ".markdown":
		return "md"
	case ".txt", ".text":
		return "txt"
	case ".htm", ".html":
		return "html"
	case ".json", ".csv":
		return end[1:]
	}
	return ""
}
