package historysql

import "slices"

// NewestVersion is the version of files that this package makes.
var NewestVersion = len(migrations)

// ApplicationID marks files of this package.
const ApplicationID = applicationID

// Script runs statements on the writing connection, outside of a transaction.
func (s *Store) Script(text string) error {
	s.turn <- struct{}{}
	defer func() { <-s.turn }()
	c, err := s.writing()
	if err != nil {
		return err
	}
	return c.script(text)
}

// ListStatements gives the queries of pages.
func ListStatements() []string {
	var out []string
	for _, text := range listStatements {
		out = append(out, text)
	}
	slices.Sort(out)
	return out
}

// Lookups gives the queries that must not walk a table.
func Lookups() map[string]string {
	return map[string]string{
		"rows": readRows, "execution": readExecution, "phase": readPhase, "position": readPosition, "unseen": nextUnseen,
		"definition": readDefinition, "definition by name": readDefinitionByName, "due timers": dueTimers, "next timer": nextTimer,
		"orphans": unleasedDriven,
	}
}
