package fragment

import "time"

// History is a page of a run's records.
type History struct {
	ID   string
	From int64
	// Earlier and Later are the addresses of the neighbouring pages, "" without one.
	Earlier, Later string
	Records        []Record
}

func (*History) template() string { return "history" }

// Record is a record with its payload, which is folded.
type Record struct {
	Seq              int64
	Kind, Name, Node string
	NodePath         string
	Summary          string
	At               time.Time
	Payload          *Value
	// Raw is the address of the record as JSON, StatePath that of the state after it, "" for a record that does not change the state.
	Raw, StatePath string
}

// StateAt is the state of a run at a record.
type StateAt struct {
	ID  string
	Seq int64
	// Set is the record that set the state, Earlier the one that set the state before it; 0 without one.
	Set, Earlier         int64
	History, EarlierPath string
	State                *Value
	Changes              *Changes
}

func (*StateAt) template() string { return "state-at" }

// Changes are the differences between two states. Rest counts those that are left out.
type Changes struct {
	List []Change
	Rest int
}

// Change is a difference between two states.
type Change struct {
	Pointer string
	// Value is the new value; nil for a removed value, with Gone set.
	Value *Value
	Gone  bool
}
