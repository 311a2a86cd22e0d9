package history

import (
	"math"
	"strconv"
)

// Undone reads the records of a run from the first on, and finds the record to continue from, before the work that rollbacks have undone. The
// zero value has read no records.
type Undone struct {
	visits map[string]*undoneVisit
	// rollback is the seq of the newest RollbackStarted.
	rollback int64
}

// undoneVisit holds the seqs of the records that began, completed and undid a visit; 0 if absent. undoes is the visit that this visit itself
// undoes.
type undoneVisit struct {
	node                   string
	begun, completed, gone int64
	undoes                 string
}

// Take reads the next record.
func (u *Undone) Take(r *Record) {
	p := &r.Payload
	switch r.Name {
	case RollbackStarted:
		u.rollback = r.Seq
	case NodeScheduled, ActivityRequested, SubworkflowStarted:
		v := u.visit(p)
		if v.begun == 0 {
			v.begun = r.Seq
		}
		if p.Compensates != "" {
			v.undoes = p.Compensates
		}
	case ActivityCompleted, SubworkflowCompleted:
		if p.Replayed || p.Failed {
			return
		}
		v := u.visit(p)
		v.completed = r.Seq
		if of := u.visits[v.undoes]; of != nil {
			of.gone = r.Seq
		}
	}
}

// Visit is the visit of a node, counted from 1.
type Visit struct {
	NodeID string
	Visit  int
}

// Undoing marks a visit as undone after all records read so far: a rollback is about to undo it.
func (u *Undone) Undoing(v Visit) {
	u.visit(&Payload{NodeID: v.NodeID, Visit: v.Visit}).gone = math.MaxInt64
}

func (u *Undone) visit(p *Payload) *undoneVisit {
	key := p.NodeID + "#" + strconv.Itoa(max(p.Visit, 1))
	v := u.visits[key]
	if v == nil {
		if u.visits == nil {
			u.visits = map[string]*undoneVisit{}
		}
		v = &undoneVisit{node: p.NodeID}
		u.visits[key] = v
	}
	return v
}

// Before returns the newest record, at or before seq, that does not follow completed work that was undone later or is about to be undone.
// node is the node whose visit begins after that record, "" if the record is seq itself.
func (u *Undone) Before(seq int64) (before int64, node string) {
	for before = seq; ; {
		found := false
		for _, v := range u.visits {
			if v.completed > 0 && v.completed <= before && before < v.gone {
				before, node, found = max(v.begun-1, 1), v.node, true
			}
		}
		if !found || before == 1 {
			return before, node
		}
	}
}

// rollbackPage is the number of records that BeforeRollback reads at once.
const rollbackPage = 200

// BeforeRollback reads the records of a run whose newest rollback is over. It returns the newest record that does not follow completed work
// that was undone later, and the node whose visit begins after that record, "" if nothing was undone. before is 0 for a run without a
// rollback. read returns at most limit records, beginning with record from.
func BeforeRollback(read func(from int64, limit int) ([]Record, error)) (before int64, node string, err error) {
	var u Undone
	for from := int64(1); ; {
		records, err := read(from, rollbackPage)
		if err != nil {
			return 0, "", err
		}
		for i := range records {
			u.Take(&records[i])
		}
		if len(records) == 0 {
			before, node = u.Before(u.rollback)
			return before, node, nil
		}
		from = records[len(records)-1].Seq + 1
	}
}
