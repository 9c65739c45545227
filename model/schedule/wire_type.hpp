// Queries, keys and values in another type between ranks than in kernels. The schedule stays as it is, with casts around what
// travels; the model, the simulator and the executor read them as all other copies:
//
//   narrower on the wire   (bf16 in kernels, fp8 between ranks) what a rank sends first is cast once, what it received is cast
//                          before the kernel that reads it and sent on as it came
//   narrower in kernels    (fp8 in kernels, bf16 between ranks) ranks have the wide type; all is cast before the kernel
//
// Copies that a schedule makes anyway, as into the order of an all-to-all, cast on the way. Outputs and gradients travel as
// strategy::partials and strategy::gradients say. A cache to which an exchange of heads adds is kept as it travels. Latents
// (latent_keys.hpp) are of the results' type at home and where they are expanded, and of the wire's between ranks.
#pragma once

#include "model/attention/attention.hpp"
#include "model/schedule/schedule.hpp"

namespace attnsim {

/// The same schedule where the attention's types are alike.
schedule with_wire_type(schedule, const attention&);

}  // namespace attnsim
