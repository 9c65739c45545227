// Tokens that a question leaves open under a causal mask. A schedule's usual ones are the fastest as a rule, but not where
// blocks are small and each kernel call counts: there other layouts, with fewer calls, make up for work that is less even.
#pragma once

#include "ask/question.hpp"

namespace attnsim::ask {

/// strategy_of(), with another layout that the sequence fits where that is faster. Other layouts count if the closed form,
/// which is too low if anything, puts one of them first; by how the question asks for times one of these or the usual one is
/// chosen. Documents keep the usual one. Throws as predict() does.
strategy with_fastest_tokens(const question&, const attention&, int ranks, shared_work&);

}  // namespace attnsim::ask
