// Package collectors has the collectors that several scenarios can use, each in its own file. A collector that makes sense
// for one scenario only stands beside it, in scenarios/NAME/kinds.
package collectors
