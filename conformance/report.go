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
	// Total is the number of vectors that ran; Counts has the numbers by kind.
	Total  int            `json:"total"`
	Passed int            `json:"passed"`
	Failed int            `json:"failed"`
	Counts map[string]int `json:"counts"`
	// Surfaces lists the surfaces that parity vectors compared.
	Surfaces []string `json:"surfaces"`
	// Problems lists problems of the whole run, such as a folder without vectors.
	Problems []Problem `json:"problems,omitempty"`
	// Vectors is in path order.
	Vectors []VectorReport `json:"vectors"`
}

// VectorReport is the outcome of one vector.
type VectorReport struct {
	// ID is "" if it could not be read from the file.
	ID          string `json:"id"`
	Kind        string `json:"kind"`
	Path        string `json:"path"`
	Description string `json:"description,omitempty"`
	Status      Status `json:"status"`
	// Problems is empty for a vector that passed.
	Problems []Problem `json:"problems,omitempty"`
}

// Problem is a difference from a vector's expectation, or an error in the vector itself.
type Problem struct {
	// At is the place: a JSON pointer into the vector, or a step, a surface and a field.
	At      string `json:"at,omitempty"`
	Message string `json:"message"`
	// Expected and Got are plain JSON, for problems found by a comparison.
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
