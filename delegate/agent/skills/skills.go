// Package skills gives agents instructions for kinds of tasks, which they read when they need them.
//
//	library, err := skills.New("skills")
//	tools, err := library.Tools([]string{"memo-style"})
//
// A skill is a folder with a file SKILL.md, which begins with its name and description between two lines "---" (YAML), and may have further
// pages, pages/*.md. The names and descriptions are part of the system text; read_skill returns a text.
package skills

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"

	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// Bounds of skills.
const (
	// MaxFileBytes is how large SKILL.md or a page may be.
	MaxFileBytes = 256 << 10
	// MaxDescription is how long a description may be, in bytes.
	MaxDescription = 1024
	// MaxName is how long the name of a skill may be.
	MaxName = 64
	// maxPages is how many pages of a skill are listed.
	maxPages = 500
)

// Library is a folder of skills. Its files are read when they are needed. It is safe for concurrent use.
type Library struct{ folder string }

// New checks that the folder is there. The error has the code AGENT_CONFIG_INVALID.
func New(folder string) (*Library, error) {
	root, err := os.OpenRoot(folder)
	if err != nil {
		return nil, problem.New(problem.AgentConfigInvalid, "the folder of the skills cannot be opened").WithCause(err)
	}
	return &Library{folder}, root.Close()
}

// Check returns an error if a skill cannot be used.
func (l *Library) Check(name string) error {
	_, err := l.read(name)
	return err
}

// skill is one that was read.
type skill struct {
	name, description, body string
	pages                   []string
}

func invalid(name, format string, args ...any) error {
	return problem.New(problem.AgentConfigInvalid, "skill %q: %s", name, problem.Format(format, args...))
}

// open opens the folder of a skill as a root that no path leaves.
func (l *Library) open(name string) (*os.Root, error) {
	if !plainName(name) || len(name) > MaxName {
		return nil, fs.ErrNotExist
	}
	all, err := os.OpenRoot(l.folder)
	if err != nil {
		return nil, err
	}
	defer all.Close()
	return all.OpenRoot(name)
}

// plainName reports whether a name is one of a file that is not hidden.
func plainName(name string) bool {
	return fs.ValidPath(name) && !strings.HasPrefix(name, ".") && !strings.ContainsFunc(name, func(r rune) bool {
		return r == '/' || r == '\\' || r == ':' || r < ' ' || r == 0x7f || r == utf8.RuneError
	})
}

// read reads a skill. The error has the code AGENT_CONFIG_INVALID.
func (l *Library) read(name string) (s skill, err error) {
	root, err := l.open(name)
	if err != nil {
		return s, problem.New(problem.AgentConfigInvalid, "there is no skill %q", name).WithHint("A skill is a folder with a file SKILL.md.")
	}
	defer root.Close()
	text, err := readFile(root, "SKILL.md")
	if err != nil {
		return s, invalid(name, "SKILL.md %v", err)
	}
	head, body, ok := cutHead(text)
	if !ok {
		return s, invalid(name, "SKILL.md does not begin with its name and description between two lines \"---\"")
	}
	var front struct {
		Name        string `yaml:"name"`
		Description string `yaml:"description"`
	}
	if err := yaml.Unmarshal([]byte(head), &front); err != nil {
		return s, invalid(name, "the text between the lines \"---\" of SKILL.md is not YAML: %v", err)
	}
	s = skill{name: name, description: strings.Join(strings.Fields(front.Description), " "), body: strings.TrimSpace(body)}
	switch {
	case front.Name != "" && strings.TrimSpace(front.Name) != name:
		return s, invalid(name, "SKILL.md calls itself %q: give it the name of its folder", problem.Clip(front.Name, MaxName))
	case s.description == "" || len(s.description) > MaxDescription:
		return s, invalid(name, "SKILL.md needs a description of at most %d bytes, which tells the model when to read it", MaxDescription)
	}
	s.pages = pages(root)
	return s, nil
}

// cutHead cuts a text at the lines "---".
func cutHead(text string) (head, body string, ok bool) {
	rest, ok := strings.CutPrefix(text, "---\n")
	if !ok {
		return "", "", false
	}
	head, body, ok = strings.Cut("\n"+rest, "\n---\n")
	if !ok {
		head, ok = strings.CutSuffix("\n"+rest, "\n---")
	}
	return head, body, ok
}

// pages lists the further pages of a skill, by their names without ".md".
func pages(root *os.Root) (names []string) {
	entries, _ := fs.ReadDir(root.FS(), "pages") // there need be none
	for _, e := range entries {
		if name, ok := strings.CutSuffix(e.Name(), ".md"); ok && plainName(name) && len(names) < maxPages {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// readFile reads a text in a folder.
func readFile(root *os.Root, name string) (string, error) {
	f, _, err := regularfile.OpenIn(root, name)
	switch {
	case errors.Is(err, regularfile.ErrNotRegular):
		return "", fmt.Errorf("is not a file")
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", cause(err))
	}
	defer f.Close()
	read, err := io.ReadAll(io.LimitReader(f, MaxFileBytes+1))
	text := strings.TrimPrefix(string(read), "\ufeff")
	switch {
	case err != nil:
		return "", fmt.Errorf("cannot be read: %w", cause(err))
	case len(read) > MaxFileBytes:
		return "", fmt.Errorf("is larger than %d KiB", MaxFileBytes>>10)
	case !utf8.ValidString(text) || strings.Contains(text, "\x00"):
		return "", fmt.Errorf("is not text in UTF-8")
	}
	return strings.ReplaceAll(text, "\r\n", "\n"), nil
}

// cause is an error of the file system without the path.
func cause(err error) error {
	if p, ok := err.(*fs.PathError); ok {
		return p.Err
	}
	return err
}
