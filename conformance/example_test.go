package conformance_test

import (
	"context"
	"fmt"

	"github.com/workflows-engine/workflows-engine/conformance"
)

// A folder of vectors is run; the report says what came of it.
func ExampleRunDir() {
	report, err := conformance.RunDir(context.Background(), "vectors/cycles", conformance.Options{})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, v := range report.Vectors {
		for _, p := range v.Problems {
			fmt.Println(v.ID, p.At, p.Message)
		}
	}
	fmt.Println(report.Status)
	// Output: pass
}
