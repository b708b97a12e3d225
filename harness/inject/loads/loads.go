// Package loads has the loads, each kind in its own file.
package loads
