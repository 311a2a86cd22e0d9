package fleet

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/workflows-engine/workflows-engine/history"
	"github.com/workflows-engine/workflows-engine/internal/jsonvalue"
	"github.com/workflows-engine/workflows-engine/internal/runjson"
)

// LimitText describes a shared limit that an attempt waits for, as in "the shared limit llm_call: 20 of 20 in use".
func LimitText(u *history.LimitUse) string {
	text := "the shared limit " + u.Class + ": "
	if used := u.Slots(); u.Concurrent > 0 && used >= u.Concurrent {
		return text + fmt.Sprintf("%d of %d in use", used, u.Concurrent)
	}
	return text + rateText(u.PerSecond)
}

// BoundsText describes the bounds of a shared limit, as in "20 at once, 150 starts a second".
func BoundsText(l history.SharedLimit) string {
	var bounds []string
	if l.Concurrent > 0 {
		bounds = append(bounds, fmt.Sprintf("%d at once", l.Concurrent))
	}
	if l.PerSecond > 0 {
		bounds = append(bounds, rateText(l.PerSecond))
	}
	if len(bounds) == 0 {
		return "no shared limit"
	}
	return strings.Join(bounds, ", ")
}

func rateText(perSecond float64) string {
	return strconv.FormatFloat(perSecond, 'f', -1, 64) + " starts a second"
}

// LimitsJSON returns shared limits with their use.
func LimitsJSON(uses []history.LimitUse) jsonvalue.Ordered {
	limits := make([]jsonvalue.Ordered, len(uses))
	for i := range uses {
		u := &uses[i]
		l := runjson.Limit(u)
		l.Put("waiting", float64(u.Waiting()))
		processes := make([]jsonvalue.Ordered, len(u.Shares))
		for j := range u.Shares {
			s := &u.Shares[j]
			processes[j] = jsonvalue.Ordered{{"process", s.Process}, {"in_use", float64(s.Slots)}, {"waiting", float64(s.Waiting())}}
		}
		l.Put("processes", processes)
		limits[i] = l
	}
	return jsonvalue.Ordered{{"limits", limits}}
}
