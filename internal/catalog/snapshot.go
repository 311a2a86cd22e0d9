package catalog

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/problem"
	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// Snapshot is the content of a directory at one time. It is immutable.
type Snapshot struct {
	// Workflows lists the usable definitions by name, version and file. Of files with the same definition the first counts.
	Workflows []*Workflow
	// Broken lists the files without a valid definition, by file name.
	Broken []*Broken
	// Err is why the directory, or a part of it, could not be read. The rest is then taken from the previous snapshot.
	Err *problem.Error

	folder string
	files  map[string]*content
}

func newSnapshot(folder string, files map[string]*file, err *problem.Error) *Snapshot {
	s := &Snapshot{Err: err, folder: folder, files: make(map[string]*content, len(files))}
	hashes := map[string]bool{}
	for _, name := range slices.Sorted(maps.Keys(files)) {
		f := files[name]
		s.files[name] = f.content
		if f.broken != nil {
			s.Broken = append(s.Broken, f.broken)
		}
		if f.good != nil && !hashes[f.good.Hash] {
			hashes[f.good.Hash] = true
			w := *f.good
			w.Broken = f.broken
			s.Workflows = append(s.Workflows, &w)
		}
	}
	slices.SortStableFunc(s.Workflows, func(a, b *Workflow) int {
		return cmp.Or(cmp.Compare(a.Name, b.Name), cmp.Compare(a.Version, b.Version))
	})
	for _, w := range s.Workflows {
		w.Ref = w.Hash
		for _, ref := range []string{w.Name, w.Name + "@" + w.Version} {
			if found, err := s.Find(ref); err == nil && found == w && len(ref) <= maxRef {
				w.Ref = ref
				break
			}
		}
	}
	return s
}

// maxRef is how many bytes a Ref by name has at most: answers show it whole.
const maxRef = 128

// Find returns the workflow of a name, a name@version or a definition hash; of a name with colons, the last part may be the name,
// as in urn:example:unit-tests. The error is a *problem.Error: WORKFLOW_NOT_FOUND for an unknown name, VALIDATION_ERROR if there are
// several workflows, or only a broken file without a good version.
func (s *Snapshot) Find(ref string) (*Workflow, error) { return s.find(ref, "") }

// find is Find for a definition that has the pinned hash, unless that is "".
func (s *Snapshot) find(ref, pin string) (*Workflow, error) {
	name := ref[strings.LastIndex(ref, ":")+1:]
	for _, matches := range []func(*Workflow) bool{
		func(w *Workflow) bool { return w.Hash == ref },
		func(w *Workflow) bool { return w.Name == ref },
		func(w *Workflow) bool { return w.Name == name },
		func(w *Workflow) bool { return w.Name+"@"+w.Version == ref },
		func(w *Workflow) bool { return w.Name+"@"+w.Version == name },
	} {
		var found, good []*Workflow
		for _, w := range s.Workflows {
			if !matches(w) || pin != "" && w.Hash != pin {
				continue
			}
			if found = append(found, w); w.Broken == nil {
				good = append(good, w)
			}
		}
		if len(good) > 0 { // they take precedence over the last good version of a broken file
			found = good
		}
		switch len(found) {
		case 0:
		case 1:
			return found[0], nil
		default:
			return nil, ambiguous(ref, found)
		}
	}
	if b := s.brokenNamed(ref, name); b != nil && pin == "" {
		return nil, refused(ref, b)
	}
	return nil, s.notFound(ref)
}

// FileOf returns the name of the file of a workflow, even if the file is broken. The error is Find's.
func (s *Snapshot) FileOf(ref string) (string, error) {
	w, err := s.Find(ref)
	if err == nil {
		return w.File, nil
	}
	if b := s.brokenNamed(ref, ref[strings.LastIndex(ref, ":")+1:]); b != nil && b.Readable() {
		return b.File, nil
	}
	return "", err
}

// brokenNamed returns the broken file, without a good version, of one of the names, which may be followed by a version; nil without one.
func (s *Snapshot) brokenNamed(names ...string) *Broken {
	for _, b := range s.Broken {
		for _, name := range names {
			before, _, _ := strings.Cut(name, "@")
			if b.Kept == nil && (slices.Contains([]string{name, before}, b.Name) || slices.Contains([]string{name, before}, stem(b.File))) {
				return b
			}
		}
	}
	return nil
}

// ambiguous returns the error for a reference to several definitions. Its code is not WORKFLOW_NOT_FOUND, which would let the next resolver
// search for the name.
func ambiguous(ref string, found []*Workflow) error {
	e := problem.New(problem.ValidationError, "workflow %q is ambiguous: %s and %s have the name %q", ref, found[0].File, found[1].File, found[0].Name).
		WithReason(problem.WorkflowNotFound)
	if found[0].Version == found[1].Version {
		return e.WithHint("Both have version %q: change one of the files, or name one by its hash, as in %q.", found[0].Version, found[0].Hash)
	}
	return e.WithHint("Name one of them by its version, as in %q, or a subworkflow by version_pin; or rename the other.", found[0].Name+"@"+found[0].Version)
}

// refused returns the error for the name of a broken file without a good version.
func refused(ref string, b *Broken) error {
	e := problem.New(problem.ValidationError, "workflow %q: %s is invalid: %s", ref, b.File, b.Text()).
		WithHint("Correct the file. No other version is run.")
	e.Details = b.Err.Details
	return e
}

func (s *Snapshot) notFound(ref string) error {
	if s.Err != nil && len(s.Workflows) == 0 {
		return problem.New(problem.WorkflowNotFound, "workflow %q", ref).WithCause(s.Err).WithHint("%s", s.Err.Hint)
	}
	e := problem.New(problem.WorkflowNotFound, "workflow %q not found: no definition in %s has the name %q", ref, s.folder, ref[strings.LastIndex(ref, ":")+1:])
	names := s.names()
	if near := suggest.Nearest(ref, names); near != "" {
		return e.WithHint("Did you mean %q?", near)
	}
	switch {
	case len(s.Broken) > 0:
		var broken []string
		for _, b := range s.Broken[:min(len(s.Broken), maxNamed)] {
			broken = append(broken, b.File+" ("+b.Text()+")")
		}
		return e.WithHint("Correct these files: %s.", strings.Join(broken, "; "))
	case len(names) == 0:
		return e.WithHint("Name a directory with *.workflow.json or *.workflow.yaml files: --workflow-dir.")
	}
	list := strings.Join(names[:min(len(names), maxNamed)], ", ")
	if more := len(names) - maxNamed; more > 0 {
		list += problem.Format(" and %d more", more)
	}
	return e.WithHint("Use %s, or name another directory with --workflow-dir.", list)
}

// maxNamed is how many names or files a hint lists.
const maxNamed = 20

// names returns the names of the workflows, each once.
func (s *Snapshot) names() []string {
	var names []string
	for _, w := range s.Workflows {
		names = append(names, w.Name)
	}
	return slices.Compact(names)
}

// ResolveNow is ResolveWorkflow: it waits only for the disk.
func (c *Catalog) ResolveNow(ref, pin string) (*definition.Document, error) {
	return c.ResolveWorkflow(context.Background(), ref, pin)
}

// ResolveWorkflow finds the definition of a subworkflow, or of a run that is started by name, which makes the catalog a
// graph.Resolver. The directory is read again, because its files may have changed while a run waited. The error is Find's.
func (c *Catalog) ResolveWorkflow(_ context.Context, ref, pin string) (*definition.Document, error) {
	w, err := c.Look().find(ref, pin)
	if err != nil {
		return nil, err
	}
	return w.Document(), nil
}
