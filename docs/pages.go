// Package docs holds the pages that commands print, so that each stands in one place.
package docs

import _ "embed"

// Codes is the page on codes, in Markdown.
//
//go:embed codes.md
var Codes string
