package conformance

// Status is the outcome of a vector or of a whole run.
type Status string

// The two outcomes.
const (
	Pass Status = "pass"
	Fail Status = "fail"
)

// Report is the outcome of a run.
type Report struct {
	Status  Status `json:"status"`
	Profile string `json:"profile,omitempty"`
	// Total is the number of vectors that ran, Counts the same by kind.
	Total  int            `json:"total"`
	Passed int            `json:"passed"`
	Failed int            `json:"failed"`
	Counts map[string]int `json:"counts"`
	// Surfaces are the surfaces that parity vectors compared.
	Surfaces []string `json:"surfaces"`
	// Problems of the run as a whole, such as a folder without vectors.
	Problems []Problem `json:"problems,omitempty"`
	// Vectors in path order.
	Vectors []VectorReport `json:"vectors"`
}

// VectorReport is the outcome of one vector.
type VectorReport struct {
	// ID is "" if the file could not be read that far.
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	Path        string `json:"path"`
	Description string `json:"description,omitempty"`
	Status      Status `json:"status"`
	// Problems is empty for a vector that passed.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is one thing that differs from what a vector expects, or that is wrong with the vector itself.
type Problem struct {
	// At is a place: a JSON pointer into the vector, or a step and a surface and a member.
	At      string `json:"at,omitempty"`
	Message string `json:"message"`
	// Expected and Got are plain JSON, where there is something to compare.
	Expected any `json:"expected,omitempty"`
	Got      any `json:"got,omitempty"`
}

// summarize fills the counters from the vectors.
func (r *Report) summarize() {
	r.Status = Pass
	r.Counts = map[string]int{}
	for _, v := range r.Vectors {
		r.Total++
		r.Counts[v.Kind]++
		if v.Status == Pass {
			r.Passed++
		} else {
			r.Failed++
		}
	}
	if r.Failed > 0 || len(r.Problems) > 0 {
		r.Status = Fail
	}
}
