package historypg

import (
	"context"
	"regexp"
)

// Setting returns a setting of the server in a connection of the store.
func (s *Store) Setting(ctx context.Context, name string) (value string, err error) {
	err = s.pool.QueryRow(ctx, "SELECT current_setting($1)", name).Scan(&value)
	return value, err
}

// Tables returns the names of the tables with data.
func Tables() (names []string) {
	for _, text := range migrations() {
		for _, found := range regexp.MustCompile(`CREATE TABLE @([a-z_]+)`).FindAllStringSubmatch(text, -1) {
			if found[1] != "meta" {
				names = append(names, found[1])
			}
		}
	}
	return names
}
