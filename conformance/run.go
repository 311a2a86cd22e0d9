package conformance

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph"
	"github.com/workflows-engine/workflows-engine/graph/machine"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/history/historymem"
	"github.com/workflows-engine/workflows-engine/internal/regularfile"
)

// DefaultTimeout is the default time limit of a vector.
const DefaultTimeout = time.Minute

// Options configures a run of vectors. The zero value is ready to use.
type Options struct {
	// Profile selects the vectors with this profile and those without profiles; "" selects all.
	Profile string
	// Kind selects the vectors of a kind; "" selects all.
	Kind string
	// Surfaces lists the surfaces that parity vectors compare with the runner.
	Surfaces []SurfaceFactory
	// AllowPending passes parity vectors marked as pending without running them.
	AllowPending bool
	// NewStore opens an empty store for one vector, which is closed after it; nil means a store in memory.
	NewStore func(ctx context.Context) (history.Store, error)
	// NewEngine makes the engine of parity and replay vectors in place of a Runner; nil means a Runner. It needs no store then, there are no other
	// Surfaces, and replays of the recorded history are not checked. The engine of replay vectors is a graph.Exporter.
	NewEngine func(graph.Options) (graph.Engine, error)
	// Branches is the engine's order of parallel branches; "" is the engine's default.
	Branches machine.BranchOrder
	// Timeout limits each vector; 0 means DefaultTimeout.
	Timeout time.Duration
	// Parallel is the number of vectors that run at once; 0 means one per processor.
	Parallel int
}

// Run runs the vectors below a root: those in its folder vectors/, or all of them without such a folder. An error concerns the folder
// or the context; problems of vectors are in the report.
func Run(ctx context.Context, root fs.FS, o Options) (Report, error) {
	start := "."
	if info, err := fs.Stat(root, "vectors"); err == nil && info.IsDir() {
		start = "vectors"
	}
	return runBelow(ctx, root, start, o)
}

// RunDir is like Run for a folder of the file system. dir may also be part of a vectors folder, or one vector file.
func RunDir(ctx context.Context, dir string, o Options) (Report, error) {
	root, start, err := findRoot(dir)
	if err != nil {
		return Report{}, err
	}
	return runBelow(ctx, regularfile.FS(root), start, o)
}

// findRoot returns the root for the paths in vectors, and the folder below it to search for vectors. A folder inside vectors/ is
// recognised by its path.
func findRoot(dir string) (root, start string, err error) {
	dir, err = filepath.Abs(dir)
	if err != nil {
		return "", "", err
	}
	info, err := os.Stat(dir)
	if err != nil {
		return "", "", err
	}
	if inside, err := os.Stat(filepath.Join(dir, "vectors")); err == nil && inside.IsDir() {
		return dir, "vectors", nil
	}
	for at := dir; at != filepath.Dir(at); at = filepath.Dir(at) {
		if filepath.Base(at) == "vectors" {
			root = filepath.Dir(at)
			start, err = filepath.Rel(root, dir)
			return root, filepath.ToSlash(start), err
		}
	}
	if !info.IsDir() {
		return filepath.Dir(dir), filepath.Base(dir), nil
	}
	return dir, ".", nil
}

func runBelow(ctx context.Context, root fs.FS, start string, o Options) (Report, error) {
	o = o.withDefaults()
	paths, err := discover(root, start)
	if err != nil {
		return Report{}, err
	}
	report := Report{Profile: o.Profile, Surfaces: []string{runnerSurfaceName}}
	for _, s := range o.Surfaces {
		report.Surfaces = append(report.Surfaces, s.Name)
	}
	if len(paths) == 0 {
		report.Problems = append(report.Problems, Problem{Message: fmt.Sprintf("no *%s files below %s", suffix, start)})
	}

	vectors := readAll(root, paths, &o)
	if len(vectors) == 0 && len(paths) > 0 {
		report.Problems = append(report.Problems, Problem{Message: fmt.Sprintf("profile %q selects none of %d vectors", o.Profile, len(paths))})
	}
	report.Vectors = runAll(ctx, root, vectors, &o)
	report.summarize()
	return report, context.Cause(ctx)
}

func (o Options) withDefaults() Options {
	if o.NewStore == nil {
		o.NewStore = func(context.Context) (history.Store, error) { return historymem.New(), nil }
	}
	if o.Timeout <= 0 {
		o.Timeout = DefaultTimeout
	}
	if o.Parallel <= 0 {
		o.Parallel = runtime.GOMAXPROCS(0)
	}
	return o
}

// discover lists the vector files in path order.
func discover(root fs.FS, start string) ([]string, error) {
	var paths []string
	err := fs.WalkDir(root, start, func(name string, entry fs.DirEntry, err error) error {
		if err == nil && !entry.IsDir() && strings.HasSuffix(path.Base(name), suffix) {
			paths = append(paths, name)
		}
		return err
	})
	slices.Sort(paths)
	return paths, err
}

// candidate is a vector as it was read.
type candidate struct {
	vector   *vector
	problems problems
}

// readAll reads the vectors that the options select. Unreadable vectors are selected too, and a vector with a duplicate id fails.
func readAll(root fs.FS, paths []string, o *Options) []candidate {
	var selected []candidate
	first := map[string]string{}
	for _, name := range paths {
		v, ps := readVector(root, name)
		if other, taken := first[v.id]; taken && v.id != "" {
			ps.add("/id", "%q is also the id of %s", v.id, other)
		} else {
			first[v.id] = name
		}
		if len(ps) > 0 || v.selected(o.Profile) && (o.Kind == "" || v.kind == o.Kind) {
			selected = append(selected, candidate{v, ps})
		}
	}
	return selected
}

// runAll runs the vectors in parallel and returns their outcomes in the same order.
func runAll(ctx context.Context, root fs.FS, candidates []candidate, o *Options) []VectorReport {
	reports := make([]VectorReport, len(candidates))
	slots := make(chan struct{}, o.Parallel)
	var running sync.WaitGroup
	for i, c := range candidates {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			ps := c.problems
			if len(ps) == 0 {
				bounded, stop := context.WithTimeoutCause(ctx, o.Timeout, fmt.Errorf("vector took longer than %v", o.Timeout))
				defer stop()
				ps = runVector(bounded, c.vector, root, o)
			}
			reports[i] = VectorReport{
				ID: c.vector.id, Kind: c.vector.kind, Path: c.vector.path, Description: c.vector.description,
				Status: Pass, Problems: ps,
			}
			if len(ps) > 0 {
				reports[i].Status = Fail
			}
		})
	}
	running.Wait()
	return reports
}
