package historypg

import "regexp"

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
