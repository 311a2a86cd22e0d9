package process

import (
	"cmp"
	"context"
	"os"
	"slices"
	"strconv"
	"sync"
	"time"

	"github.com/workflows-engine/workflows-engine/graph/definition"
	"github.com/workflows-engine/workflows-engine/graph/internal/library"
	"github.com/workflows-engine/workflows-engine/graph/internal/run"
	"github.com/workflows-engine/workflows-engine/graph/internal/work"
	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/wait"
)

// Work is graph.Work, which documents the values.
type Work string

// The values of Work.
const (
	WorkOwn  Work = "own"
	WorkAll  Work = history.WorkAll
	WorkNone Work = "none"
)

const (
	// claimAtOnce bounds the runs of one claim.
	claimAtOnce = 32
	// oldestEvery is the number of claims after which one begins with the run that has waited longest.
	oldestEvery = 20
	// giveAfter is how long an attempt waits here before its run is given away, giveAtOnce bounds the runs given away at a time.
	giveAfter  = 250 * time.Millisecond
	giveAtOnce = 500
	// rosterInterval is the interval of reads of the other processes.
	rosterInterval = time.Second
	// describeInterval is the interval of descriptions of a process whose load changes.
	describeInterval = 2 * time.Second
	// performsInterval is the interval between two questions which executors there are.
	performsInterval = 10 * time.Second
	// maxLacks bounds the executors that a process is remembered to lack.
	maxLacks = 1000
)

// Share divides the runs of the store among its processes. A process with room claims ready runs; one whose attempts wait gives runs away
// while another one has room. Each describes itself in the store, so that the others know its room.
type Share struct {
	work.Env
	Work Work
	// Queues are the queues whose runs are claimed; nil means all.
	Queues    []string
	Capacity  int
	Version   string
	Admit     func() error
	performer *work.Performer
	lease     *Lease
	search    *Search
	limits    *SharedLimits
	runs      driver

	queue  history.Queue  // nil if the store has none
	roster history.Roster // nil if the store has none

	started time.Time
	claimed int           // the number of claims so far
	wake    chan struct{} // receives when runs may be ready; nil if this process claims none
	asked   chan struct{} // receives after others was asked for
	loaded  chan struct{} // receives after a claimed run was loaded

	mu       sync.Mutex
	claiming bool              // a claim is under way
	taking   map[string]int    // claimed runs that are being loaded
	lacks    []string          // sorted: the executors of waiting runs that this process was found to lack
	all      []history.Process // as last read
	listedAt time.Time         // when all was read
	others   []history.Process
	read     time.Time // of others
	wanted   bool      // others was asked for since it was read

	// Only tend uses the fields below.
	performs []string
	listed   time.Time // when performs was listed
	looked   time.Time // at the shared limits
	said     history.About
	saidAs   string
	saidWhen time.Time
}

// Begin starts the parts that the process needs.
func (s *Share) Begin() {
	s.started = s.Now()
	if s.queue == nil || s.roster == nil {
		return
	}
	s.asked = make(chan struct{}, 1)
	s.Go(s.tend)
	if s.Work != WorkAll {
		return
	}
	s.lease.Stay()
	s.loaded, s.taking = make(chan struct{}, 1), map[string]int{}
	s.wake = make(chan struct{}, 1)
	s.Go(func() {
		err := s.queue.WatchReady(s.Context, func() { s.note(true) })
		if err != nil && s.Context.Err() == nil {
			s.Log.Warn("ready runs not watched any more: they are found within a second", run.LogError, err)
		}
	})
	s.Go(s.claim)
}

// note wakes the claims if runs may be ready.
func (s *Share) note(ready bool) {
	if !ready || s.wake == nil {
		return
	}
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// claim claims ready runs while there is room for them.
func (s *Share) claim() {
	if wait.For(s.Context, searchDelay) != nil {
		return
	}
	for {
		if s.search.owed.Load() {
			s.search.takeAll() // orphans had their turn before, so they do not wait behind the ready runs
		}
		if s.claimSome(s.room()) {
			continue
		}
		select {
		case <-s.Context.Done():
			return
		case <-s.wake: // by the store, or by an overview within a second
		case <-s.performer.Turns.Freed():
		case <-s.loaded:
		}
	}
}

// room returns the number of runs to claim now.
func (s *Share) room() int {
	s.mu.Lock()
	taking := len(s.taking)
	s.mu.Unlock()
	return min(s.performer.Turns.Free()-taking, claimAtOnce)
}

// Taking reports whether this process may have claimed a ready run that it has not continued yet.
func (s *Share) Taking(executionID string) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.claiming || s.taking[executionID] > 0
}

// claimSome claims at most n ready runs, continues them in the background, and reports whether more may be ready.
func (s *Share) claimSome(n int) (more bool) {
	if n <= 0 || s.performer.InFlight.Draining() || s.Admit != nil && s.Admit() != nil {
		return false
	}
	process, err := s.lease.Hold(s.Context)
	if err != nil {
		s.notClaimed(err)
		return false
	}
	if s.claimed == 0 { // the others see a new worker at once
		s.tendNow()
	}
	s.claimed++
	s.mu.Lock()
	s.claiming = true
	s.mu.Unlock()
	found := map[string]history.ReadyRun{}
	ids, err := s.queue.ClaimReady(s.Context, history.ReadyClaim{
		Process: process, Serves: s.serves, Room: s.roomIn, Limit: n, Oldest: s.claimed%oldestEvery == 0,
		Found: func(r history.ReadyRun) { found[r.Execution.ID] = r },
	})
	s.mu.Lock()
	s.claiming = false
	for _, id := range ids {
		s.taking[id]++
	}
	s.mu.Unlock()
	for _, id := range ids {
		s.Go(func() {
			s.runs.takeReady(id, process, found[id])
			s.taken(id)
		})
	}
	s.notClaimed(err)
	return len(ids) == n
}

func (s *Share) notClaimed(err error) {
	if err != nil && s.Context.Err() == nil {
		s.Log.Warn("ready runs not claimed", run.LogError, err)
	}
}

// roomIn returns the number of runs of a lane that the limits of this process admit.
func (s *Share) roomIn(l history.Lane) int { return s.performer.Room(l.Needs) }

// taken notes that a claimed run was loaded. It may need no place, or have returned it before.
func (s *Share) taken(executionID string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taking[executionID]--; s.taking[executionID] == 0 {
		delete(s.taking, executionID)
	}
	select {
	case s.loaded <- struct{}{}:
	default:
	}
}

// serves reports whether this process performs the runs of a lane.
func (s *Share) serves(l history.Lane) bool {
	if s.leaves(l.Queue) {
		return false
	}
	serves := s.performer.Serves(l.Needs)
	s.mu.Lock()
	defer s.mu.Unlock()
	switch i, known := slices.BinarySearch(s.lacks, l.Needs); {
	case serves && known:
		s.lacks = slices.Delete(s.lacks, i, i+1)
	case !serves && !known && len(s.lacks) < maxLacks:
		s.lacks = slices.Insert(s.lacks, i, l.Needs)
	}
	return serves
}

// Others reports whether another process performs the runs of a lane and has room, as far as is known.
func (s *Share) Others(l history.Lane) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.wanted {
		s.wanted = true
		s.tendNow()
	}
	return slices.ContainsFunc(s.others, func(p history.Process) bool { return !p.Full && p.Serves(l) })
}

// tendNow makes tend continue.
func (s *Share) tendNow() {
	select {
	case s.asked <- struct{}{}:
	default:
	}
}

// leaves reports whether this process leaves the runs of a queue to others.
func (s *Share) leaves(queue string) bool {
	return s.Queues != nil && !slices.Contains(s.Queues, queue)
}

// claims reports whether the ready runs of a lane are claimed here in their order, or left to others.
func (s *Share) claims(l history.Lane) bool {
	return s.leaves(l.Queue) || s.Work == WorkAll && s.serves(l)
}

// Workers returns the number of live processes that perform the runs of a lane.
func (s *Share) Workers(ctx context.Context, l history.Lane) (int, error) {
	n, err := s.elsewhere(ctx, l)
	if s.Work == WorkAll && s.serves(l) {
		n++
	}
	return n, err
}

// elsewhere returns the number of other live processes that perform the runs of a lane.
func (s *Share) elsewhere(ctx context.Context, l history.Lane) (n int, err error) {
	own := s.lease.Process()
	err = s.lately(ctx, time.Now(), func(all []history.Process) bool {
		n = 0
		for i := range all {
			if all[i].Name != own && all[i].Serves(l) {
				n++
			}
		}
		return n > 0
	})
	return n, err
}

// lately calls found with the live processes, as of at most a second ago; if that returns false, once more as of begun or later.
func (s *Share) lately(ctx context.Context, begun time.Time, found func([]history.Process) bool) error {
	s.mu.Lock()
	all, at := s.all, s.listedAt
	s.mu.Unlock()
	if !at.IsZero() && time.Since(at) < rosterInterval && (found(all) || at.After(begun)) {
		return nil
	}
	all, err := s.Processes(ctx)
	if err == nil {
		found(all)
	}
	return err
}

// Processes returns the live processes of the store; none if the store does not list them.
func (s *Share) Processes(ctx context.Context) ([]history.Process, error) {
	if s.roster == nil {
		return nil, nil
	}
	at := time.Now()
	all, err := s.roster.Processes(ctx)
	if err == nil {
		s.mu.Lock()
		s.all, s.listedAt = all, at
		s.mu.Unlock()
	}
	return slices.Clone(all), err
}

// Capabilities returns the nodes that are performed for runs that this process starts in a queue: by itself or, with WorkNone, by the live
// workers.
func (p *Process) Capabilities(ctx context.Context, queue string) (library.Capabilities, error) {
	none := p.share.Work == WorkNone || queue != "" && p.share.leaves(queue)
	if p.share.queue == nil || !none && p.share.Queues == nil {
		return p.Performer, nil
	}
	w := workers{queue: cmp.Or(queue, history.DefaultQueue)}
	begun := time.Now()
	w.lately = func(found func([]history.Process) bool) error { return p.share.lately(ctx, begun, found) }
	if !none {
		return divided{p.Performer, w, p.share.leaves}, nil
	}
	return w, w.lately(func([]history.Process) bool { return true })
}

// divided is a process that performs the nodes of its queues.
type divided struct {
	own    library.Capabilities
	others workers
	leaves func(queue string) bool
}

// Missing names the worker or the executor that a node lacks; see library.Capabilities.
func (d divided) Missing(n *definition.Node) (missing, setting string, partial bool) {
	if n.Queue != "" && d.leaves(n.Queue) {
		return d.others.Missing(n)
	}
	return d.own.Missing(n)
}

// workers are the live processes, as those that perform the nodes of runs in a queue.
type workers struct {
	lately func(found func([]history.Process) bool) error
	queue  string
}

// Missing names the worker that a node lacks; see library.Capabilities.
func (w workers) Missing(n *definition.Node) (missing, setting string, partial bool) {
	lane := history.Lane{Queue: cmp.Or(n.Queue, w.queue), Needs: work.Needs(n)}
	if lane.Needs == "" {
		return "", "", false
	}
	served := false
	err := w.lately(func(all []history.Process) bool {
		served = slices.ContainsFunc(all, func(p history.Process) bool { return p.Serves(lane) })
		return served
	})
	if served || err != nil {
		return "", "", false
	}
	return "a worker for " + lane.Needs + " in queue " + strconv.Quote(lane.Queue), "", false
}

// tend describes this process, reads the descriptions of others while they matter, and gives runs away.
func (s *Share) tend() {
	for {
		pause := rosterInterval
		if s.performer.Turns.Waiting() > 0 {
			pause = giveAfter
		}
		select {
		case <-s.Context.Done():
			return
		case <-s.asked:
		case <-time.After(pause):
		}
		s.describe()
		if s.Work != WorkAll && time.Since(s.looked) >= rosterInterval { // else the overview tells
			s.limits.look(s.Context)
			s.looked = time.Now()
		}
		waiting := s.performer.Turns.Waiting() > 0
		if s.mustRead(waiting) {
			s.readOthers()
		}
		if waiting && s.Work == WorkAll {
			s.give()
		}
	}
}

// about returns the description of this process.
func (s *Share) about() history.About {
	if time.Since(s.listed) >= performsInterval {
		s.performs, s.listed = s.performer.Performs(), time.Now()
	}
	s.mu.Lock()
	lacks := slices.Clone(s.lacks)
	s.mu.Unlock()
	host, _ := os.Hostname()
	turns := s.performer.Turns
	return history.About{
		Host: host, PID: os.Getpid(), Version: s.Version, Started: s.started, Work: string(s.Work), Queues: s.Queues, Performs: s.performs, Lacks: lacks,
		Capacity: s.Capacity, InFlight: turns.InUse(), Waiting: turns.Waiting(), Full: turns.Free() == 0,
	}
}

// describe stores the description of this process, if it has a lease and the description has changed.
func (s *Share) describe() {
	process := s.lease.Process()
	if process == "" {
		return
	}
	now := time.Now()
	if process == s.saidAs && now.Sub(s.saidWhen) < rosterInterval {
		return
	}
	a := s.about()
	same := slices.Equal(a.Performs, s.said.Performs) && slices.Equal(a.Lacks, s.said.Lacks) && a.Full == s.said.Full
	load := a.InFlight == s.said.InFlight && a.Waiting == s.said.Waiting
	if process == s.saidAs && same && (load || now.Sub(s.saidWhen) < describeInterval) {
		return
	}
	if err := s.roster.Describe(s.Context, process, a); err != nil {
		if s.Context.Err() == nil {
			s.Log.Warn("process not described to others", run.LogError, err)
		}
		return
	}
	s.said, s.saidAs, s.saidWhen = a, process, now
}

// mustRead reports whether the other processes matter, and are to be read.
func (s *Share) mustRead(waiting bool) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	must := (waiting || s.wanted) && time.Since(s.read) >= rosterInterval
	if must {
		s.wanted, s.read = false, time.Now()
	}
	return must
}

func (s *Share) readOthers() {
	all, err := s.Processes(s.Context)
	if err != nil {
		return // the next read repeats it
	}
	own := s.lease.Process()
	others := slices.DeleteFunc(all, func(p history.Process) bool { return p.Name == own })
	s.mu.Lock()
	defer s.mu.Unlock()
	s.others = others
}

// give gives away runs whose attempts have waited here, while another process has room. As many attempts as are in flight keep waiting here.
func (s *Share) give() {
	s.mu.Lock()
	room := slices.ContainsFunc(s.others, func(p history.Process) bool { return p.Work == history.WorkAll && !p.Full })
	s.mu.Unlock()
	if !room {
		return
	}
	ids := s.performer.Turns.Overdue(time.Now().Add(-giveAfter))
	ids = ids[min(len(ids), s.performer.Turns.InUse()):]
	var given sync.WaitGroup
	turn := make(chan struct{}, claimAtOnce)
	for _, id := range ids[:min(len(ids), giveAtOnce)] {
		turn <- struct{}{}
		given.Add(1)
		s.Go(func() {
			defer func() { <-turn; given.Done() }()
			s.runs.giveAway(id)
		})
	}
	given.Wait()
}
