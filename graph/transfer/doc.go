// Package transfer moves runs between stores, as files in the form of package runfile.
package transfer
