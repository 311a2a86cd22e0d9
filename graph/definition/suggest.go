package definition

import (
	"fmt"

	"github.com/workflows-engine/workflows-engine/internal/suggest"
)

// didYouMean suggests the name that is nearest to a wrong one, "" if none is near.
func didYouMean(wrong string, names []string) string {
	return didYouMeanOne(suggest.Nearest(wrong, names))
}

func didYouMeanOne(near string) string {
	if near == "" {
		return ""
	}
	return fmt.Sprintf("did you mean %q?", near)
}
