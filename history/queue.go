package history

import (
	"context"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/workflows-engine/workflows-engine/graph/problem"
)

// Queue is a Store that hands runs to processes with room for them. Both stores of this module implement it.
//
// A run is ready if it needs a driver, has no owner and waits in a lane. Append and Offer make runs ready; a run stops being ready when a
// process becomes its owner, when it ends and when it is deleted. Store.Unowned omits ready runs. Nothing depends on the order of ready runs
// being exact: two runs may have the same turn.
type Queue interface {
	Store

	// ClaimReady makes c.Process the owner of the first ready runs in the lanes that it serves, in one transaction, and returns them in order: by
	// priority, the highest first, then by turn, then by age. It is one read while no run is ready in these lanes. It never waits for a run
	// that another process is claiming. The process must hold a lease, as for Claim.
	ClaimReady(ctx context.Context, c ReadyClaim) ([]string, error)

	// Offer makes runs ready that process owns, in one transaction: they have no owner afterwards. It ignores runs that process does not own,
	// and runs that have ended.
	Offer(ctx context.Context, process string, runs ...Offer) error

	// Lanes returns the lanes with ready runs, in the order of their names.
	Lanes(ctx context.Context) ([]LaneUse, error)

	// Place returns the place of a ready run in its lane; ok is false for a run that is not ready.
	Place(ctx context.Context, executionID string) (p Place, ok bool, err error)

	// ReadyIn returns the ready runs in a lane, those that have been ready longest first, at most limit (0: all).
	ReadyIn(ctx context.Context, l Lane, limit int) ([]string, error)

	// WatchReady calls wake whenever runs may have become ready, also in other processes, until ctx ends. It returns nil then, or the
	// store's error. A call of wake is a hint: it may come twice, late or never. wake must return soon.
	WatchReady(ctx context.Context, wake func()) error
}

// DefaultQueue is the queue of runs that name no other one.
const DefaultQueue = "default"

// MaxQueueName is the largest length of the name of a queue.
const MaxQueueName = 64

// IsQueueName reports whether a name of a queue is valid: at most MaxQueueName letters and digits of ASCII, ".", "_" and "-".
func IsQueueName(name string) bool {
	valid := name != "" && len(name) <= MaxQueueName
	for _, r := range name {
		valid = valid && (r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || strings.ContainsRune("._-", r))
	}
	return valid
}

// Lane is a part of the ready runs: those of one queue whose next attempt needs the same executor.
type Lane struct {
	// Queue is a name without "/".
	Queue string
	// Needs names the executor, such as "step:charge".
	Needs string
}

// String returns the lane's name: queue, "/" and needs.
func (l Lane) String() string { return l.Queue + "/" + l.Needs }

// ParseLane returns the lane with a name; see Lane.String.
func ParseLane(name string) Lane {
	queue, needs, _ := strings.Cut(name, "/")
	return Lane{Queue: queue, Needs: needs}
}

// Ready is a run's place among the ready runs.
type Ready struct {
	Lane Lane
	// Priority decides first: runs of a higher priority are claimed first.
	Priority int
	// Tenant names whom the run belongs to, such as a customer. Tenants take turns: the turn of a run that becomes ready is one more than the
	// last turn that waits for its tenant, and at least the first turn that waits in its lane and priority.
	Tenant string
}

// Check returns INTERNAL_ERROR for a place that no store accepts: its queue is "" or contains "/", or a text is not UTF-8.
func (r *Ready) Check() error {
	if r.Lane.Queue == "" || strings.Contains(r.Lane.Queue, "/") || !utf8.ValidString(r.Lane.String()+r.Tenant) {
		return problem.New(problem.Internal, "a run cannot be ready in the lane %q for the tenant %q", r.Lane, r.Tenant)
	}
	return nil
}

// Offer is a run to give away.
type Offer struct {
	ExecutionID string
	Ready
}

// ReadyClaim selects the runs of ClaimReady.
type ReadyClaim struct {
	Process string
	// Serves reports whether the process performs the runs of a lane. It is called for each lane with ready runs, and for some that had ready
	// runs before. It must return soon.
	Serves func(Lane) bool
	// Room returns the largest number of runs to claim in a lane, for which Serves is true; nil for no limit.
	Room func(Lane) int
	// Limit is the largest number of runs, at least 1.
	Limit int
	// Oldest makes the run that has been ready longest the first one, so that no priority starves.
	Oldest bool
	// Found, unless nil, is called with claimed runs as the claim has read them, which saves the process these reads. A store may leave it out.
	Found func(ReadyRun)
}

// ReadyRun is a claimed run: its projection, and its newest stored position as Store.Position returns it.
type ReadyRun struct {
	Execution   Execution
	PositionSeq int64
	Position    []byte
}

// In returns the largest number of runs to claim in a lane.
func (c *ReadyClaim) In(l Lane) int {
	switch {
	case !c.Serves(l):
		return 0
	case c.Room == nil:
		return c.Limit
	}
	return min(c.Limit, max(0, c.Room(l)))
}

// Check returns INTERNAL_ERROR for a claim without a process, without Serves or with a limit below 1.
func (c *ReadyClaim) Check() error {
	if c.Process == "" || c.Serves == nil || c.Limit < 1 {
		return problem.New(problem.Internal, "the process %q cannot claim %d ready runs (lanes selected: %t)", c.Process, c.Limit, c.Serves != nil)
	}
	return nil
}

// LaneUse is a lane with the number of its ready runs.
type LaneUse struct {
	Lane
	// Runs is the number of ready runs, at most MaxCounted.
	Runs int
	// Since is the time since which the first of them has been ready, by the store's clock.
	Since time.Time
}

// MaxCounted bounds the ready runs that are counted in a lane.
const MaxCounted = 100_000

// Place describes the place of a ready run.
type Place struct {
	Ready
	// Ahead is the number of ready runs in the lane that are claimed before this one, at most MaxCounted.
	Ahead int
	// Since is the time since which the run has been ready, by the store's clock.
	Since time.Time
}

// Serves reports whether the process claims the runs of a lane when it has room, by its description.
func (p *Process) Serves(l Lane) bool {
	if p.Work != WorkAll || p.Queues != nil && !slices.Contains(p.Queues, l.Queue) || slices.Contains(p.Lacks, l.Needs) {
		return false
	}
	kind, _, named := strings.Cut(l.Needs, ":")
	return l.Needs == "" || slices.Contains(p.Performs, l.Needs) || slices.Contains(p.Performs, kind) || !named && slices.Contains(p.Performs, kind+":")
}

// WorkAll is About.Work of a process that performs the runs of others.
const WorkAll = "all"
