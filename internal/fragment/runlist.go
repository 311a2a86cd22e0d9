package fragment

import "time"

// RunList is a page of runs.
type RunList struct {
	// Phases are the choices of the filter by phase.
	Phases []Choice
	// Definition, Label, Below, After and Before are the values of the other filters.
	Definition, Label, Below, After, Before string
	// Active describes the filters that are set; each link removes its filter.
	Active []Link
	Rows   []Row
	// Older is the address of the next page, Newest that of the first; "" without one.
	Older, Newest string
}

func (*RunList) template() string { return "runs" }

// Choice is an option of a choice.
type Choice struct {
	Value, Text string
	Selected    bool
}

// Row is a run in a list.
type Row struct {
	ID, Title, Workflow string
	State               State
	// WaitsFor describes the wait, Error the failure or the reason of a cancel.
	WaitsFor, Error string
	// Path is the address of the row; "" means the run's.
	Path    string
	Changed time.Time
	// Handled describes why nothing is left to do about a failed run.
	Handled string
}

// Link returns the address of the row.
func (r *Row) Link() string {
	if r.Path != "" {
		return r.Path
	}
	return RunPath(r.ID)
}

// Name returns the title, or the id without one.
func (r *Row) Name() string {
	if r.Title != "" {
		return r.Title
	}
	return r.ID
}
